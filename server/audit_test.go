package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
	"github.com/ledgerd/ledgerd/internal/sigstoretest"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store"
)

const auditPath = "/v1/orgs/acme/audit"

// audited returns the bodies of the administrative actions in acme, oldest first.
func (b *backend) audited(query string) []jsontext.Value {
	b.t.Helper()
	resp := b.send(request{method: "GET", path: auditPath + "?order=asc&limit=500" + query, token: b.admin}).want(200)
	return decode[ledger.Page[jsontext.Value]](resp).Data
}

func auditEvent(t testing.TB, body jsontext.Value) ledger.AuditEvent {
	t.Helper()
	return decode[ledger.AuditEvent](response{t: t, body: body})
}

// auditLine returns an administrative action as a line: what, in which repo, by whom, and the
// changes.
func auditLine(e ledger.AuditEvent) string {
	words := []string{string(e.Action)}
	if e.Repo != "" {
		words = append(words, "in "+e.Repo)
	}
	words = append(words, "by "+e.By.Name+" over "+e.By.Via)
	for _, c := range e.Changes {
		words = append(words, c.String())
	}
	return strings.Join(words, "; ")
}

// An administrative is a backend with what administrators change.
type administrative struct {
	exceptional
	hook, token string // IDs
	session     string

	forge   *exchanging
	removed string // the ID of an exchange rule
	member  string // an ID
}

// administration lists every administrative action with what is logged of it. Some log nothing.
// An ellipsis stands for what differs in each run.
var administration = []struct {
	name string
	do   func(*administrative)
	want []string
}{
	{"create a repo", func(a *administrative) {
		a.post("/v1/orgs/acme/repos", `{"name":"Web","default_branch":"trunk"}`).want(201)
	}, []string{"repo.created; in Web; by admin of acme over api; default_branch: trunk"}},
	{"change it", func(a *administrative) {
		a.patch("/v1/orgs/acme/repos/web", `{"web_url":"https://git.example/web"}`).want(200)
	}, []string{"repo.changed; in Web; by admin of acme over api; web_url: https://git.example/web; forge: other"}},
	{"change nothing", func(a *administrative) {
		a.patch("/v1/orgs/acme/repos/web", `{"web_url":"https://git.example/web"}`).want(200)
		a.patch("/v1/orgs/acme", `{"log_public":false}`).want(200)
		a.patch("/v1/orgs/acme", `{}`).want(200)
	}, nil},
	{"archive a repo twice", func(a *administrative) {
		a.patch("/v1/orgs/acme/repos/web", `{"archived":true}`).want(200)
		a.patch("/v1/orgs/acme/repos/web", `{"archived":true}`).want(200)
		a.patch("/v1/orgs/acme/repos/web", `{"archived":false}`).want(200)
	}, []string{"repo.archived; in Web; by admin of acme over api; archived_at: …",
		"repo.unarchived; in Web; by admin of acme over api; archived_at: … → none"}},
	{"rename it", func(a *administrative) { a.patch("/v1/orgs/acme/repos/web", `{"name":"site"}`).want(200) },
		[]string{"repo.renamed; in site; by admin of acme over api; name: Web → site"}},
	{"delete and restore it", func(a *administrative) {
		a.delete("/v1/orgs/acme/repos/site?confirm=site").want(204)
		a.patch("/v1/orgs/acme/repos/~2", `{"name":"web"}`).want(200)
	}, []string{"repo.deleted; in site; by admin of acme over api; name: site → ~2; deleted_at: …",
		"repo.renamed; in web; by admin of acme over api; name: site → web; deleted_at: … → none"}},
	{"change how long it keeps things", func(a *administrative) {
		a.patch("/v1/orgs/acme/repos/web", `{"retention":{"events":"30d"}}`).want(200)
		a.patch("/v1/orgs/acme/repos/web", `{"retention":{"events":"0s"}}`).want(200)
	}, []string{`repo.changed; in web; by admin of acme over api; retention: {"events":"720h"}`,
		`repo.changed; in web; by admin of acme over api; retention: {"events":"720h"} → none`}},
	{"purge a deleted one", func(a *administrative) {
		a.post("/v1/orgs/acme/repos", `{"name":"brief"}`).want(201)
		a.delete("/v1/orgs/acme/repos/brief?confirm=brief").want(204)
		a.delete("/v1/orgs/acme/repos/~3?confirm=~3&purge=true").want(204)
		a.delete("/v1/orgs/acme/repos/~3?confirm=~3&purge=true").want(204)
	}, []string{"repo.created; in brief; by admin of acme over api; default_branch: main",
		"repo.deleted; in brief; by admin of acme over api; name: brief → ~3; deleted_at: …",
		"repo.purged; in ~3; by admin of acme over api; purged_at: …"}},
	{"archive the org", func(a *administrative) {
		a.patch("/v1/orgs/acme", `{"archived":true}`).want(200)
		a.patch("/v1/orgs/acme", `{"archived":false}`).want(200)
	}, []string{"org.archived; by admin of acme over api; archived_at: …",
		"org.unarchived; by admin of acme over api; archived_at: … → none"}},
	{"change the org", func(a *administrative) { a.patch("/v1/orgs/acme", `{"log_public":true}`).want(200) },
		[]string{"org.changed; by admin of acme over api; log_public: false → true"}},
	{"create a token", func(a *administrative) {
		created := decode[ledger.Token](a.post("/v1/orgs/acme/tokens", `{"name":"deploy","scope":"write"}`).want(201))
		a.token = created.ID
	}, []string{"token.created; by admin of acme over api; name: deploy; scope: write; secret_digest: sha256:…"}},
	{"revoke it twice", func(a *administrative) {
		a.delete("/v1/orgs/acme/tokens/" + a.token).want(204)
		a.delete("/v1/orgs/acme/tokens/" + a.token).want(204)
	}, []string{"token.revoked; by admin of acme over api; name: deploy → none; scope: write → none"}},
	{"be refused", func(a *administrative) {
		a.send(request{method: "POST", path: "/v1/orgs/acme/repos", token: a.writer, body: `{"name":"x"}`}).want(403)
		a.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(409)
		a.post("/v1/orgs/acme/tokens", `{"name":"x","scope":"all"}`).want(400)
		a.delete("/v1/orgs/acme/identities/idn_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").want(404)
		a.putPolicy(`"v9-000000000000"`, `{"requirements":[]}`).want(412)
	}, nil},

	{"add an identity", func(a *administrative) { a.ci = a.signer("cn=new,ou=build,o=acme") },
		[]string{"identity.added; by admin of acme over api; kind: key; dn: cn=new,ou=build,o=acme; fingerprint: …"}},
	{"change it", func(a *administrative) {
		a.patch("/v1/orgs/acme/identities/"+a.ci.id, `{"may":["test:*"]}`).want(200)
		a.patch("/v1/orgs/acme/identities/"+a.ci.id, `{"may":["test:*"]}`).want(200)
	}, []string{`identity.changed; by admin of acme over api; may: ["test:*"]`}},
	{"revoke it", func(a *administrative) { a.delete("/v1/orgs/acme/identities/" + a.ci.id).want(204) },
		[]string{"identity.revoked; by admin of acme over api; revoked_at: 2026-11-30T09:…"}},
	{"distrust it", func(a *administrative) {
		a.delete("/v1/orgs/acme/identities/" + a.ci.id + "?since=2026-11-01").want(204)
	}, []string{"identity.distrusted; by admin of acme over api; distrusted_since: 2026-11-01T00:00:00.000Z"}},

	{"set a trusted root twice", func(a *administrative) {
		a.setTrustedRoot("public-good", sigstoretest.PublicGood)
		a.setTrustedRoot("public-good", sigstoretest.PublicGood)
	}, []string{"trusted_root.set; by admin of acme over api; version: 1; digest: …"}},
	{"admit keyless signers", func(a *administrative) { a.admit(ledger.SigstoreEntry{Subject: "ci@acme.example"}) },
		[]string{"identity.added; by admin of acme over api; kind: sigstore; dn: " + keylessSigner + "; sigstore: " +
			`{"trusted_root":"public-good","issuer":"` + githubIssuer + `","subject":"ci@acme.example"}; fingerprint: …`}},
	{"remove the trusted root", func(a *administrative) { a.delete(trustedPath + "public-good").want(204) },
		[]string{"trusted_root.removed; by admin of acme over api; version: 1 → 2; digest: … → …; removed: true"}},

	{"apply a policy", func(a *administrative) { a.putPolicy("*", fmt.Sprintf(withExceptions, 2)).want(200) },
		[]string{"policy.applied; in api; by admin of acme over api; version: 2 → 3; digest: sha256:… → sha256:…"}},
	{"simulate one", func(a *administrative) {
		a.post("/v1/orgs/acme/policies/api/simulate", `{"requirements":[]}`).want(200)
	}, nil},

	{"create a webhook", func(a *administrative) {
		a.hook = a.webhook(`{"url":"https://hooks.example/T0P5ECRET","events":["state"]}`).ID
	}, []string{`webhook.created; in api; by admin of acme over api; url: https://hooks.example; ` +
		`url_digest: sha256:…; events: ["state"]; active: true; secret_digest: sha256:…`}},
	{"change it", func(a *administrative) {
		a.patch(webhooksPath+"/"+a.hook, `{"active":false,"description":"x"}`).want(200)
		a.patch(webhooksPath+"/"+a.hook, `{"active":false}`).want(200)
		a.patch(webhooksPath+"/"+a.hook, `{"active":true}`).want(200)
	}, []string{"webhook.changed; in api; by admin of acme over api; active: true → false; description: x",
		"webhook.changed; in api; by admin of acme over api; active: false → true"}},
	{"rotate its secret", func(a *administrative) { a.post(webhooksPath+"/"+a.hook+"/rotate", "").want(200) },
		[]string{"webhook.rotated; in api; by admin of acme over api; secret_digest: sha256:…"}},
	{"ping it and redeliver", func(a *administrative) {
		ping := decode[outbound.Delivery](a.post(webhooksPath+"/"+a.hook+"/ping", "").want(202))
		a.post(webhooksPath+"/"+a.hook+"/deliveries/"+ping.ID+"/redeliver", "").want(202)
	}, []string{"webhook.pinged; in api; by admin of acme over api",
		"webhook.redelivered; in api; by admin of acme over api; delivery: dlv_…; event: evt_…"}},
	{"replay", func(a *administrative) {
		a.post(webhooksPath+"/"+a.hook+"/replay", `{"since":"2026-11-30T00:00:00Z"}`).want(202)
	}, []string{"webhook.replayed; in api; by admin of acme over api; since: 2026-11-30T00:00:00.000Z"}},
	{"delete it", func(a *administrative) { a.delete(webhooksPath + "/" + a.hook).want(204) },
		[]string{"webhook.deleted; in api; by admin of acme over api; url: https://hooks.example → none; …"}},

	{"grant and end an exception", func(a *administrative) {
		a.except(a.security, 1, "review", time.Hour).want(201)
		a.clock.advance(time.Second)
		a.except(a.security, 1, "review", 0).want(201)
	}, []string{
		"exception.granted; in api; by write of acme over api; commit: …; identity: cn=sue,ou=security,o=acme; " +
			"requirement: review; reason: it is on fire; until: 2026-…",
		"exception.ended; in api; by write of acme over api; commit: …"}},
	{"correct a commit", func(a *administrative) {
		a.push(2, "one", editing("cmd/root.go", 100))
		a.patch(commitPath(commitID(2)), `{"targets":["release"]}`).want(200)
		a.patch(commitPath(commitID(2)), `{"targets":["release"]}`).want(200)
	}, []string{"commit.corrected; in api; by admin of acme over api; targets: …"}},

	{"sign in and out", func(a *administrative) {
		ctx := a.server.WithClient(a.t.Context(), "[2001:db8::1]:1234")
		session, _, err := a.server.SignIn(ctx, a.admin)
		must.OK(a.t, err)
		a.session = session
		must.OK(a.t, a.server.SignOut(ctx, session))
		must.OK(a.t, a.server.SignOut(ctx, session))
		_, _, err = a.server.SignIn(ctx, ledger.NewSecret())
		if err == nil {
			a.t.Error("signed in with an unknown token")
		}
	}, []string{"session.created; by admin of acme over web; token_name: admin of acme; expires_at: 2026-11-30T21:…; " +
		"session_digest: sha256:…",
		"session.ended; by admin of acme over web; token_name: admin of acme → none; expires_at: … → none; " +
			"session_digest: sha256:… → none"}},

	{"add an issuer", func(a *administrative) {
		a.post(issuersPath, fmt.Sprintf(`{"url":"https://gitlab.com","jwks":%q}`, a.forge.provider.JWKS())).want(201)
		body := fmt.Sprintf(`{"url":%q}`, a.forge.provider.URL)
		a.forge.issuer = decode[exchange.Issuer](a.post(issuersPath, body).want(201))
	}, []string{"issuer.added; by admin of acme over api; url: https://gitlab.com; jwks_digest: sha256:…",
		"issuer.added; by admin of acme over api; url: https://127.0.0.1:…"}},
	{"create exchange rules", func(a *administrative) {
		a.forge.rule(`,"repository_id":"5678","lifetime":"5m"`)
		a.removed = a.forge.rule(`,"scope":"read","project_id":"9","refs":["main"],"where":"true",` +
			`"dn":"cn=api,ou=ci-x,o=acme"`).ID
	}, []string{`exchange_rule.created; by admin of acme over api; name: ci; issuer: https:…; repository_id: 5678; ` +
		`events: ["push","workflow_dispatch","schedule","release"]; scope: write; repos: ["api"]; lifetime: 5m`,
		`exchange_rule.created; by admin of acme over api; name: ci; issuer: https:…; project_id: 9; events: …; ` +
			`refs: ["main"]; where: true; scope: read; repos: ["api"]; dn: cn=api,ou=ci-x,o=acme; lifetime: 15m`}},
	{"exchange a token", func(a *administrative) {
		a.forge.exchanged(a.forge.github(map[string]any{"repository_id": "5678"}))
		a.exchange(form(a.forge.github())).want(400)
	}, []string{"token.exchanged; by ci over api; name: ci; scope: write; expires_at: 2026-11-30T…; " +
		`repos: ["api"]; rule: rul_…; secret_digest: sha256:…; issuer: https://127.0.0.1:…; subject: 5678; ` +
		"claims_digest: sha256:…"}},
	{"remove a rule, and the rest with its issuer", func(a *administrative) {
		a.delete(rulesPath + "/" + a.removed).want(204)
		a.delete(issuersPath + "/" + a.forge.issuer.ID).want(204)
	}, []string{"exchange_rule.removed; by admin of acme over api; name: ci → none; …",
		"exchange_rule.removed; by admin of acme over api; name: ci → none; …",
		"issuer.removed; by admin of acme over api; url: https:… → none"}},

	{"add a member, change and remove it", func(a *administrative) {
		a.member = a.addMember("ann", "reader").ID
		a.patch(membersPath+"/"+a.member, `{"role":"maintainer"}`).want(200)
		a.patch(membersPath+"/"+a.member, `{"role":"maintainer"}`).want(200)
		a.delete(membersPath + "/" + a.member).want(204)
		a.delete(membersPath + "/" + a.member).want(204)
	}, []string{"member.added; by admin of acme over api; issuer: https://idp.example; subject: ann; " +
		"dn: cn=ann,ou=people-dev,o=acme; role: reader; by_rule: false; removed: false",
		"member.changed; by admin of acme over api; role: reader → maintainer",
		"member.changed; by admin of acme over api; removed: false → true"}},
	{"create a member rule and remove it", func(a *administrative) {
		rule := decode[member.Rule](a.post(memberRulesPath, `{"issuer":"https://idp.example","claim":"groups",`+
			`"value":"dev","role":"reader","dn":"cn={sub},ou=people-dev,o=acme"}`).want(201))
		a.delete(memberRulesPath + "/" + rule.ID).want(204)
	}, []string{"member_rule.created; by admin of acme over api; issuer: https://idp.example; claim: groups; " +
		"value: dev; role: reader; dn: cn={sub},ou=people-dev,o=acme",
		"member_rule.removed; by admin of acme over api; issuer: https://idp.example → none; …"}},
	{"be admitted by a rule, and no longer", func(a *administrative) {
		rule := decode[member.Rule](a.post(memberRulesPath, `{"issuer":"https://idp.example","claim":"groups",`+
			`"value":"dev","role":"reader","dn":"cn={login},ou=people-dev,o=acme"}`).want(201))
		must.OK(a.t, a.signInWith("bob", map[string][]string{"groups": {"dev"}, "login": {"bob"}}))
		a.delete(memberRulesPath + "/" + rule.ID).want(204)
		if err := a.signInWith("bob", nil); !isCode(err, ledger.CodeForbidden) {
			a.t.Errorf("signed in without a rule: %v", err)
		}
	}, []string{"member_rule.created; by admin of acme over api; …",
		"member.added; by cn=bob,ou=people-dev,o=acme over web; issuer: https://idp.example; subject: bob; " +
			"dn: cn=bob,ou=people-dev,o=acme; role: reader; by_rule: true; removed: false",
		"session.created; by cn=bob,ou=people-dev,o=acme over web; …",
		"member_rule.removed; by admin of acme over api; …",
		"member.changed; by cn=bob,ou=people-dev,o=acme over web; removed: false → true"}},
	{"sign in as a member, and end it", func(a *administrative) {
		a.patch(membersPath+"/"+a.member, `{"removed":false}`).want(200)
		_, token := a.signInMember("ann")
		a.delete(signInsPath + "/" + token.ID).want(204)
		a.delete(signInsPath + "/" + token.ID).want(204)
	}, []string{"member.changed; by admin of acme over api; removed: true → false",
		"session.created; by cn=ann,ou=people-dev,o=acme over web; token_name: cn=ann,ou=people-dev,o=acme; expires_at: …; " +
			"scope: maintain; member: mem_…; secret_digest: sha256:…; session_digest: sha256:…",
		"session.ended; by admin of acme over api; token_name: cn=ann,ou=people-dev,o=acme → none; …"}},

	{"create the CA of CI jobs, replace it, and retire it", func(a *administrative) {
		a.post(caURL, `{"may":["test:*"]}`).want(201)
		a.post(caURL, `{"may":["build:*"],"replace":true}`).want(201)
		a.delete(caURL).want(204)
	}, []string{
		`identity.added; by admin of acme over api; kind: root; dn: cn=acme CI CA …,o=acme; may: ["test:*"]; ` +
			`dn_pattern: ou=ci-*,o=acme; fingerprint: …`,
		`identity.added; by admin of acme over api; kind: root; dn: cn=acme CI CA …,o=acme; may: ["build:*"]; ` +
			`dn_pattern: ou=ci-*,o=acme; fingerprint: …`,
		"identity.revoked; by admin of acme over api; revoked_at: 2026-11-30T09:…",
	}},
	{"create the CA of people, and retire it", func(a *administrative) {
		a.post(peopleCAURL, `{}`).want(201)
		a.delete(peopleCAURL).want(204)
	}, []string{
		`identity.added; by admin of acme over api; kind: root; dn: cn=acme People CA …,o=acme; may: ["review:*"]; ` +
			`dn_pattern: ou=people-*,o=acme; fingerprint: …`,
		"identity.revoked; by admin of acme over api; revoked_at: 2026-11-30T09:…",
	}},

	{"begin an epoch", func(a *administrative) {
		l, err := a.store.Log(a.t.Context(), "acme", 0)
		must.OK(a.t, err)
		ctx := store.WithActor(a.t.Context(), ledger.Actor{Name: "host", Via: ledger.ViaHost, User: "ann"})
		_, err = a.store.BeginEpoch(ctx, l, 2, ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog,
			Key: strings.Repeat("0a", 32), Reason: "moved", Previous: &ledger.PreviousLog{}})
		must.OK(a.t, err)
	}, []string{"log.replaced; by host over host; epoch: 1 → 2; reason: moved"}},
	{"restore", func(a *administrative) {
		_, err := a.store.NoteRestore(store.WithActor(a.t.Context(), ledger.Actor{Name: "host", Via: ledger.ViaHost}))
		must.OK(a.t, err)
	}, []string{"database.restored; by host over host; events: …; last_event: evt_…"}},
}

// Each administrative action is logged once, and nothing else is. No secret is in an event, and
// each event is in the history as the list has it.
func TestAdministrativeActionsAreLogged(t *testing.T) {
	p := oidctest.New(t)
	a := &administrative{exceptional: newExceptional(t, 1, accepting(p))}
	a.forge = &exchanging{backend: a.backend, provider: p}
	for _, body := range a.audited("") {
		if line := auditLine(auditEvent(t, body)); !strings.Contains(line, "by host over host") &&
			!strings.Contains(line, "by admin of acme over api") {
			t.Errorf("the setup logged %s", line)
		}
	}

	w := &watcher{a.backend, a.client.Transport, map[string]bool{
		"POST /v1/orgs":        auditEvent(t, a.audited("")[0]).Action == ledger.AuditOrgCreated,
		"DELETE /v1/orgs/:org": true, // TestOrgsAreRenamedAndDeleted
	}}
	a.client.Transport = w
	seen := len(a.audited(""))
	for _, test := range administration {
		test.do(a)
		bodies := a.audited("")
		added := bodies[seen:]
		seen = len(bodies)
		var got []string
		for _, body := range added {
			got = append(got, auditLine(auditEvent(t, body)))
		}
		if !slices.EqualFunc(got, test.want, matchesLine) {
			t.Errorf("%s: logged\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}

	w.wantRoutes()
	for _, body := range a.audited("") {
		e := auditEvent(t, body)
		if got := a.send(request{method: "GET", path: "/v1/orgs/acme/events/" + e.ID, token: a.admin}).want(200); string(
			got.body) != string(body) {
			t.Errorf("the event is %s, and listed as %s", got.body, body)
		}
		for _, secret := range []string{a.admin, a.writer, a.session, "whsec_", "ldg_", "T0P5ECRET"} {
			if strings.Contains(string(body), secret) {
				t.Errorf("%s is in %s", secret, body)
			}
		}
		isOfMember := e.Action == ledger.AuditMemberAdded || e.Action == ledger.AuditMemberChanged
		isByRule := e.By.Via == ledger.ViaWeb && isOfMember
		noToken := e.By.Token == "" && e.Action != ledger.AuditTokenExchanged && !isByRule
		if e.By.Via == ledger.ViaAPI && (e.By.Address != "127.0.0.1" || noToken) ||
			e.By.Via == ledger.ViaWeb && (e.By.Address != "2001:db8::1" || noToken) {
			t.Errorf("by %+v", e.By)
		}
	}
}

// matchesLine reports whether a line is the wanted one, in which an ellipsis stands for any text.
func matchesLine(line, want string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(line)
}

// A watcher notes which routes have logged an administrative action.
type watcher struct {
	*backend
	next   http.RoundTripper
	logged map[string]bool // by method and pattern
}

func (w *watcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return w.next.RoundTrip(r)
	}
	before := w.actions()
	resp, err := w.next.RoundTrip(r)
	if w.actions() > before {
		w.logged[r.Method+" "+w.patternOf(r.URL.Path)] = true
	}
	return resp, err
}

// actions returns the number of administrative actions in acme.
func (b *backend) actions() int {
	b.t.Helper()
	list, err := b.store.Audits(b.t.Context(), "acme", store.AuditFilter{Query: store.Query{Limit: 500}})
	must.OK(b.t, err)
	return len(list.Data)
}

// patternOf returns the pattern of the route with a path.
func (b *backend) patternOf(path string) string {
	segments := strings.Split(path, "/")
	for _, rt := range b.server.routes() {
		pattern := strings.Split(rt.pattern, "/")
		if slices.EqualFunc(segments, pattern, func(segment, name string) bool {
			return segment == name || strings.HasPrefix(name, ":")
		}) {
			return rt.pattern
		}
	}
	return ""
}

// notActions are the routes of administrators with which they change nothing.
var notActions = map[string]string{"POST /v1/orgs/:org/policies/:repo/simulate": "a dry run"}

// wantRoutes checks that every route with which administrators change something has logged it.
func (w *watcher) wantRoutes() {
	w.t.Helper()
	for _, rt := range w.server.routes() {
		name := rt.method + " " + rt.pattern
		if rt.method != http.MethodGet && rt.scope >= ledger.Maintain && w.logged[name] == (notActions[name] != "") {
			w.t.Errorf("%s logs an action: %t (the table administration has to use the route)", name, w.logged[name])
		}
	}
}

// Readers can neither list administrative actions nor read their events, and nobody gets those by
// default.
func TestAdministrativeActionsAreForAdmins(t *testing.T) {
	b := newBackend(t)
	b.post("/v1/orgs/acme/repos", `{"name":"web"}`).want(201)
	bodies := b.audited("&action=repo.created&repo=WEB")
	if len(bodies) != 1 {
		t.Fatalf("got %s", bodies)
	}
	event := "/v1/orgs/acme/events/" + auditEvent(t, bodies[0]).ID
	for _, token := range []string{b.reader, b.writer} {
		for _, path := range []string{auditPath, event, event + "/proof", "/v1/orgs/acme/events?types=audit",
			"/v1/orgs/acme/events?types=state,audit"} {
			b.send(request{method: "GET", path: path, token: token}).wantProblem(403, ledger.CodeForbidden)
		}
		b.send(request{method: "GET", path: "/v1/orgs/acme/events?types=audit", token: token,
			header: map[string]string{"Accept": typeEvents}}).wantProblem(403, ledger.CodeForbidden)
	}
	unknown := "/v1/orgs/acme/events/evt_01KAJ8Q0M6R4YB0J3X5T9ZC2DE"
	for _, path := range []string{unknown, unknown + "/proof"} {
		b.send(request{method: "GET", path: path, token: b.reader}).wantProblem(404, ledger.CodeNotFound)
	}

	admin := func(path string) string {
		return string(b.send(request{method: "GET", path: path, token: b.admin}).want(200).body)
	}
	if body := admin("/v1/orgs/acme/events?types=audit&limit=500"); !strings.Contains(body, string(bodies[0])) {
		t.Errorf("the history is %s", body)
	}
	if body := admin("/v1/orgs/acme/events?limit=500"); strings.Contains(body, `"audit"`) {
		t.Errorf("the history by default has %s", body)
	}

	all, defaults := b.listen("?types=audit", b.admin, nil), b.listen("", b.admin, nil)
	b.patch("/v1/orgs/acme/repos/web", `{"web_url":"https://git.example/x"}`).want(200)
	b.setContract(`{"requirements":[]}`)
	if m := all.next(1)[0]; m.event != "audit" || !strings.HasPrefix(m.data,
		`{"action":"repo.changed","repo":"web","target":"web","by":{"name":"admin of acme","token":"tok_`) {
		t.Errorf("the stream has %+v", m)
	}
	if m := defaults.next(1)[0]; m.event != "policy" {
		t.Errorf("the stream by default has %+v", m)
	}
}
