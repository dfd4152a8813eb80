package server

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
)

const (
	membersPath     = "/v1/orgs/acme/members"
	memberRulesPath = "/v1/orgs/acme/member-rules"
	signInsPath     = "/v1/orgs/acme/sign-ins"
	provider        = "https://idp.example"
)

// addMember adds a member of acme with a subject and a role.
func (b *backend) addMember(subject, role string) member.Member {
	b.t.Helper()
	body := fmt.Sprintf(`{"issuer":%q,"subject":%q,"dn":"cn=%[2]s,ou=people-dev,o=acme","role":%[3]q}`,
		provider, subject, role)
	return decode[member.Member](b.post(membersPath, body).want(201))
}

// signInMember signs in the account of a member. It returns the secret of the session.
func (b *backend) signInMember(subject string) (session string, token ledger.Token) {
	b.t.Helper()
	session = rand.Text()
	token, err := b.signInAccount(member.Account{Issuer: provider, Subject: subject, Name: "Ann"}, session)
	must.OK(b.t, err)
	return session, token
}

// signInWith signs in an account with claims.
func (b *backend) signInWith(subject string, claims map[string][]string) error {
	b.t.Helper()
	_, err := b.signInAccount(member.Account{Issuer: provider, Subject: subject, Claims: claims}, rand.Text())
	return err
}

// signInAccount signs in an account whose person agrees to join acme.
func (b *backend) signInAccount(a member.Account, session string) (ledger.Token, error) {
	b.t.Helper()
	var state [32]byte
	rand.Read(state[:])
	ctx := store.WithActor(b.t.Context(), ledger.Actor{Via: ledger.ViaWeb, Address: "2001:db8::1"})
	a.Consent = "acme"
	return b.store.SignInMember(ctx, "acme", a, state, sha256.Sum256([]byte(session)), b.clock.time().Add(SessionLife))
}

// asWith sends a request with a session and a body, in process.
func (b *backend) asWith(session, method, path, body string) response {
	b.t.Helper()
	ctx := b.server.WithSession(b.t.Context(), session)
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	must.OK(b.t, err)
	if body != "" {
		req.Header.Set("Content-Type", typeJSON)
	}
	resp, err := (&http.Client{Transport: &checkedTransport{t: b.t, next: client.InProcess(b.server.Sessions())}}).Do(req)
	must.OK(b.t, err)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(b.t)
	return response{b.t, method + " " + path, resp.StatusCode, resp.Header, text}
}

// Admins add, change and remove members.
func TestMembers(t *testing.T) {
	b := newBackend(t)
	ann := b.addMember("ann", "maintainer")
	if ann.Role != member.Maintainer || ann.DN != "cn=ann,ou=people-dev,o=acme" || ann.Org != "acme" || ann.ByRule {
		t.Errorf("the member is %+v", ann)
	}
	admin := func(path string) response {
		return b.send(request{method: "GET", path: path, token: b.admin}).want(200)
	}
	list := decode[ledger.Page[member.Member]](admin(membersPath + "?limit=10")).Data
	if got := decode[member.Member](admin(membersPath + "/" + ann.ID)); len(list) != 1 || list[0] != ann || got != ann {
		t.Errorf("listed %+v, got %+v", list, got)
	}

	for field, body := range map[string]string{
		"issuer":  `{"issuer":"http://idp.example","subject":"x","dn":"cn=x,ou=people-x,o=acme","role":"reader"}`,
		"subject": `{"issuer":"https://idp.example","subject":"a\u0007","dn":"cn=x,ou=people-x,o=acme","role":"reader"}`,
		"dn":      `{"issuer":"https://idp.example","subject":"x","dn":"cn=x,ou=dev,o=acme","role":"reader"}`,
		"role":    `{"issuer":"https://idp.example","subject":"x","dn":"cn=x,ou=people-x,o=acme"}`,
	} {
		b.send(request{method: "POST", path: membersPath, token: b.admin, body: body,
			header: map[string]string{"X-Undescribed": "1"}}).wantFields(422, ledger.CodeInvalidField, field)
	}
	const again = `{"issuer":"https://idp.example","subject":"ann","dn":"cn=x,ou=people-x,o=acme","role":"reader"}`
	b.post(membersPath, again).wantProblem(409, ledger.CodeAlreadyExists)
	const sameDN = `{"issuer":"https://idp.example","subject":"x","dn":"cn=Ann,ou=people-dev,o=acme","role":"reader"}`
	b.post(membersPath, sameDN).wantFields(409, ledger.CodeAlreadyExists, "dn")

	changed := decode[member.Member](b.patch(membersPath+"/"+ann.ID, `{"role":"reader","removed":true}`).want(200))
	if changed.Role != member.Reader || changed.RemovedAt == 0 {
		t.Errorf("changed: %+v", changed)
	}
	changed = decode[member.Member](b.patch(membersPath+"/"+ann.ID, `{"removed":false}`).want(200))
	if changed.Role != member.Reader || changed.RemovedAt != 0 {
		t.Errorf("restored: %+v", changed)
	}
	b.delete(membersPath + "/" + ann.ID).want(204)
	b.delete(membersPath + "/" + ann.ID).want(204)
	b.delete(membersPath+"/mem_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)
}

// Admins create and remove the rules by which people become members.
func TestMemberRules(t *testing.T) {
	b := newBackend(t)
	const rule = `{"issuer":"https://idp.example","claim":"groups","value":"dev","role":"contributor",` +
		`"dn":"cn={login},ou=people-dev,o=acme"}`
	created := decode[member.Rule](b.post(memberRulesPath, rule).want(201))
	listed := b.send(request{method: "GET", path: memberRulesPath, token: b.admin}).want(200)
	list := decode[ledger.Page[member.Rule]](listed)
	if len(list.Data) != 1 || list.Data[0] != created || created.Role != member.Contributor || created.Claim != "groups" {
		t.Errorf("created %+v, listed %+v", created, list.Data)
	}
	for field, body := range map[string]string{
		"claim": strings.Replace(rule, `"groups"`, `"aud"`, 1),
		"dn":    strings.Replace(rule, `{login}`, `{login`, 1),
		"role":  strings.Replace(rule, `"role":"contributor",`, "", 1),
	} {
		b.send(request{method: "POST", path: memberRulesPath, token: b.admin, body: body,
			header: map[string]string{"X-Undescribed": "1"}}).wantFields(422, ledger.CodeInvalidField, field)
	}
	b.delete(memberRulesPath + "/" + created.ID).want(204)
	b.delete(memberRulesPath+"/"+created.ID).wantProblem(404, ledger.CodeNotFound)
}

// A rule about a protocol claim, which earlier releases accepted, is listed with the reason why it admits nobody.
func TestIneffectiveMemberRules(t *testing.T) {
	b := newBackend(t)
	_, err := b.store.CreateMemberRule(t.Context(), "acme", member.NewRule{Issuer: provider, Claim: "aud",
		Value: "ledgerd", Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
	must.OK(t, err)
	listed := b.send(request{method: "GET", path: memberRulesPath, token: b.admin}).want(200)
	list := decode[ledger.Page[member.Rule]](listed).Data
	if len(list) != 1 || !strings.HasPrefix(list[0].Ineffective, "aud says nothing about") {
		t.Errorf("listed %+v", list)
	}
}

// An org that the host does not name for a provider gets no members and no rules of it, and restores none.
func TestOrgsThatMayNotUseAProvider(t *testing.T) {
	b := newBackend(t)
	ann := b.addMember("ann", "reader")
	b.delete(membersPath + "/" + ann.ID).want(204)
	b.providers[provider] = []string{"globex"}
	const account = `{"issuer":"https://idp.example","subject":"x","dn":"cn=x,ou=people-x,o=acme","role":"reader"}`
	const rule = `{"issuer":"https://idp.example","claim":"groups","value":"dev","role":"reader",` +
		`"dn":"cn={sub},ou=people-x,o=acme"}`
	for _, resp := range []response{b.post(membersPath, account), b.post(memberRulesPath, rule),
		b.patch(membersPath+"/"+ann.ID, `{"removed":false}`)} {
		resp.wantFields(422, ledger.CodeInvalidField, "issuer")
		if !strings.Contains(string(resp.body), "the administrator of the host adds the org to orgs of this provider") {
			t.Errorf("%s", resp.body)
		}
	}
}

// A role permits the same as a token with its scope.
func TestRolesOfMembers(t *testing.T) {
	b := newBackend(t)
	commit := commitPath(commitID(1))
	requests := []struct{ role, method, path, body string }{
		{"reader", "GET", "/v1/orgs/acme/repos/api", ""},
		{"contributor", "PUT", commit, `{"branch":"main"}`},
		{"maintainer", "POST", webhooksPath, `{"url":"https://hooks.example/x","events":["state"]}`},
		{"maintainer", "POST", "/v1/orgs/acme/policies/api/simulate", `{"requirements":[]}`},
		{"admin", "GET", membersPath, ""},
		{"admin", "GET", memberRulesPath, ""},
		{"admin", "POST", "/v1/orgs/acme/repos", `{"name":"web"}`},
		{"admin", "POST", "/v1/orgs/acme/tokens", `{"name":"x","scope":"read"}`},
	}
	roles := []string{"reader", "contributor", "maintainer", "admin"}
	for _, role := range roles {
		b.addMember(role, role)
		session, _ := b.signInMember(role)
		for _, r := range requests {
			resp := b.asWith(session, r.method, r.path, r.body)
			allowed := slices.Index(roles, role) >= slices.Index(roles, r.role)
			if allowed != (resp.status < 300) || !allowed && resp.status != 403 {
				t.Errorf("%s: %s %s: %d %s", role, r.method, r.path, resp.status, resp.body)
			}
		}
	}
}

// The token of a member's session says who it is.
func TestSessionsOfMembers(t *testing.T) {
	b := newBackend(t)
	ann := b.addMember("ann", "admin")
	session, token := b.signInMember("ann")
	own := decode[ledger.Token](b.as(session, "GET", "/v1/token").want(200))
	if own.ID != token.ID || own.Member != ann.ID || !own.IsSignIn || own.DN != ann.DN || own.Scope != ledger.Admin {
		t.Errorf("the own token is %+v", own)
	}
	created := decode[ledger.Token](b.asWith(session, "POST", "/v1/orgs/acme/tokens",
		`{"name":"ci","scope":"write","repos":["api"]}`).want(201))
	if created.Member != ann.ID || created.CreatedBy != ann.DN+" ("+token.ID+")" || fmt.Sprint(created.Repos) != "[api]" {
		t.Errorf("created %+v", created)
	}

	// API tokens can still sign in, including those of members.
	ofAnn := decode[ledger.Token](b.asWith(session, "POST", "/v1/orgs/acme/tokens",
		`{"name":"x","scope":"read"}`).want(201))
	for _, secret := range []string{b.reader, ofAnn.Secret} {
		plain, _, err := b.server.SignIn(t.Context(), secret)
		must.OK(t, err)
		if got := decode[ledger.Token](b.as(plain, "GET", "/v1/token").want(200)); got.IsSignIn || got.DN != "" {
			t.Errorf("the token of the session is %+v", got)
		}
	}
	if _, _, err := b.server.SignIn(t.Context(), created.Secret); !isCode(err, ledger.CodeUnauthenticated) {
		t.Errorf("a token for some repos signs in: %v", err)
	}
}

// Members see and end their own sign-ins, and admins those of all.
func TestSignInsOfMembers(t *testing.T) {
	b := newBackend(t)
	ann, bob := b.addMember("ann", "reader"), b.addMember("bob", "admin")
	session, ofAnn := b.signInMember("ann")
	_, again := b.signInMember("ann")
	boss, ofBob := b.signInMember("bob")
	ids := func(resp response) string {
		var list []string
		for _, token := range decode[ledger.Page[ledger.Token]](resp.want(200)).Data {
			list = append(list, token.ID)
		}
		return strings.Join(list, " ")
	}

	own, all := ofAnn.ID+" "+again.ID, ofAnn.ID+" "+again.ID+" "+ofBob.ID
	for name, test := range map[string]struct {
		session, query, want string
	}{
		"own":                      {session, "", own},
		"own, by name":             {session, "?member=" + ann.ID, own},
		"all":                      {boss, "", all},
		"those of another, by all": {boss, "?member=" + ann.ID, own},
		"own, of an admin":         {boss, "?member=" + bob.ID, ofBob.ID},
	} {
		if got := ids(b.as(test.session, "GET", signInsPath+test.query)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := ids(b.send(request{method: "GET", path: signInsPath, token: b.admin})); got != all {
		t.Errorf("to the API token of an admin: %s, want %s", got, all)
	}
	b.as(session, "GET", signInsPath+"?member="+bob.ID).wantProblem(403, ledger.CodeForbidden)
	b.send(request{method: "GET", path: signInsPath, token: b.writer}).wantProblem(403, ledger.CodeForbidden)
	b.send(request{method: "DELETE", path: signInsPath + "/" + ofAnn.ID, token: b.writer}).
		wantProblem(403, ledger.CodeForbidden)

	ofProgram := decode[ledger.Token](b.asWith(boss, "POST", "/v1/orgs/acme/tokens",
		`{"name":"program","scope":"read"}`).want(201)).Secret
	b.send(request{method: "GET", path: signInsPath, token: ofProgram}).wantProblem(403, ledger.CodeForbidden)
	b.send(request{method: "DELETE", path: signInsPath + "/" + ofBob.ID, token: ofProgram}).
		wantProblem(403, ledger.CodeForbidden)

	b.as(session, "DELETE", signInsPath+"/"+ofBob.ID).wantProblem(404, ledger.CodeNotFound)
	b.as(session, "DELETE", signInsPath+"/"+again.ID).want(204)
	b.as(boss, "DELETE", signInsPath+"/"+ofAnn.ID).want(204)
	b.as(session, "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
	if got := ids(b.as(boss, "GET", signInsPath)); got != ofBob.ID {
		t.Errorf("left are %s", got)
	}
}

// The removal of a member ends the sessions and streams of the member within 15 seconds, and those of
// the tokens that the member has created. Those of others go on.
func TestRemovalOfAMemberEndsStreams(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		ann := b.addMember("ann", "admin")
		session, _ := b.signInMember("ann")
		created := decode[ledger.Token](b.asWith(session, "POST", "/v1/orgs/acme/tokens",
			`{"name":"ci","scope":"read"}`).want(201))
		byToken, other := b.listen("", created.Secret, nil), b.listen("", b.reader, nil)
		req, err := http.NewRequestWithContext(b.server.WithSession(b.t.Context(), session), "GET",
			"http://localhost/v1/orgs/acme/events", nil)
		must.OK(b.t, err)
		req.Header.Set("Accept", typeEvents)
		inPage, err := client.InProcess(b.server.Sessions()).RoundTrip(req)
		must.OK(b.t, err)
		defer inPage.Body.Close()

		start := time.Now()
		b.delete(membersPath + "/" + ann.ID).want(204)
		_, err = io.Copy(io.Discard, inPage.Body)
		must.OK(b.t, err)
		byToken.wantEnd()
		if took := time.Since(start); took > 15*time.Second {
			b.t.Errorf("the streams of a former member ended after %v", took)
		}
		b.as(session, "GET", "/v1/token").wantProblem(401, ledger.CodeUnauthenticated)
		b.send(request{method: "GET", path: "/v1/token", token: created.Secret}).
			wantProblem(401, ledger.CodeUnauthenticated)
		b.putPolicy("*", `{"requirements":[]}`).want(200)
		other.next(1)
	})
}

// A token that is limited to some repos has no access to the rest of the org.
func TestTokensOfReposAreLimited(t *testing.T) {
	b := newBackend(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	create := func(fields string) ledger.Token {
		return decode[ledger.Token](b.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"admin"`+fields+`}`).want(201))
	}
	secret := create(`,"repos":["api"]`).Secret
	b.send(request{method: "POST", path: "/v1/orgs/acme/tokens", token: secret, body: `{"name":"y","scope":"admin"}`}).
		wantProblem(403, ledger.CodeForbidden)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos", token: secret, body: `{"name":"new"}`}).
		wantProblem(403, ledger.CodeForbidden)
	p := b.send(request{method: "GET", path: "/v1/orgs/acme/identities", token: secret}).
		wantProblem(403, ledger.CodeForbidden)
	if p.Detail != "the API token is only for api: it was created for no other repo" {
		t.Errorf("the detail is %q", p.Detail)
	}

	b.patch("/v1/orgs/acme/repos/api", `{"name":"renamed"}`).want(200)
	b.send(request{method: "GET", path: "/v1/orgs/acme/repos/renamed", token: secret}).want(200)
	free := create(``).Secret
	b.send(request{method: "GET", path: "/v1/orgs/acme/repos", token: free}).want(200)
	b.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"read","repos":["none"]}`).wantProblem(404, ledger.CodeNotFound)
	many := strings.Repeat(`"renamed",`, 50) + `"renamed"`
	b.send(request{method: "POST", path: "/v1/orgs/acme/tokens", token: b.admin,
		body:   `{"name":"x","scope":"read","repos":[` + many + `]}`,
		header: map[string]string{"X-Undescribed": "1"}}).wantFields(422, ledger.CodeInvalidField, "repos")
}

// A rule does not give an account the name of a person who has signed with a certificate of a trusted root.
func TestRulesGiveNoDNOfASigner(t *testing.T) {
	b := newBackend(t)
	b.trustCosign()
	ann := identity.DN{CN: "Ann", OU: "people-dev", O: "acme"}
	key, leaf := issue(t, b.clock.now(), func(c *x509.Certificate) { c.Subject = ann.Name() })
	b.post(memberRulesPath, `{"issuer":"https://idp.example","claim":"groups","value":"dev","role":"contributor",`+
		`"dn":"cn={login},ou=people-dev,o=acme"}`).want(201)
	claims := map[string][]string{"groups": {"dev"}, "login": {"ann"}}

	statement, err := attestation.NewStatement("git+https://git.example/acme/api", jobCommit,
		attestation.ResultPredicate{Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass}})
	must.OK(t, err)
	bundle := must.Get(attestation.SignBundle(key, []*x509.Certificate{leaf}, statement))(t)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos/api/attestations", token: b.writer, body: string(bundle)}).
		want(201)
	if err := b.signInWith("mallory", claims); !isCode(err, ledger.CodeAlreadyExists) {
		t.Errorf("a claim made an account the signer Ann: %v", err)
	}

	b.addMember("ann", "contributor") // an admin may
	must.OK(t, b.signInWith("ann", claims))
}
