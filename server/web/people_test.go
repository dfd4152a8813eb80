package web_test

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server"
)

const (
	provider    = "https://idp.example"
	membersPath = "/orgs/acme/settings/members"
	rulesPath   = "/orgs/acme/settings/member-rules"
	signInsPath = "/orgs/acme/settings/sign-ins"
)

// addMember adds a member of acme with a subject.
func (e *env) addMember(subject string, r member.Role) member.Member {
	e.t.Helper()
	m, err := e.host.AddMember(e.t.Context(), "acme", member.NewMember{Issuer: provider, Subject: subject,
		DN: "cn=" + subject + ",ou=people-dev,o=acme", Role: r})
	must.OK(e.t, err)
	return m
}

// signInMember signs a member in. It returns the browser of the member.
func (e *env) signInMember(subject string) (*browser, ledger.Token) {
	e.t.Helper()
	return e.signInAccount(member.Account{Issuer: provider, Subject: subject, Name: "Ann <b>Lee</b>",
		Email: "ann@acme.example"})
}

// signInAccount signs in the account of a member. It returns the browser of the member.
func (e *env) signInAccount(a member.Account) (*browser, ledger.Token) {
	e.t.Helper()
	session := rand.Text()
	token, err := e.db.SignInMember(e.t.Context(), "acme", a, sha256.Sum256([]byte("state "+session)),
		sha256.Sum256([]byte(session)), e.clock.time().Add(server.SessionLife))
	must.OK(e.t, err)
	w := e.browser()
	w.client.Jar.SetCookies(parse(e.t, e.url), []*http.Cookie{{Name: "ledgerd", Value: session, Path: "/"}})
	return w, token
}

func (e *env) members() []member.Member {
	e.t.Helper()
	return must.Get(client.Collect(e.host.Members(e.t.Context(), "acme"), 0))(e.t)
}

// Admins add a member, change the role, and remove and restore the member.
func TestMembers(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(membersPath).want(200).has("No members yet", "No rules: only members whom an admin has added")
	w.get(membersPath+"/new").want(200).has("Add member", "contributor: also register commits")
	form := url.Values{"issuer": {provider}, "subject": {" ann "}, "dn": {"cn=ann,ou=people-dev,o=acme"},
		"role": {"contributor"}}
	w.post(membersPath+"/new", form).redirectsTo(membersPath)
	ann := e.members()[0]
	if ann.Subject != "ann" || ann.Role != member.Contributor {
		t.Errorf("added %+v", ann)
	}
	w.get(membersPath).want(200).has("ann contributor", "cn=ann,ou=people-dev,o=acme", "never signed in",
		"set by an admin", "Account ann of https://idp.example")

	w.post(membersPath+"/"+ann.ID+"/role", url.Values{"role": {"admin"}}).redirectsTo(membersPath)
	w.post(membersPath+"/"+ann.ID+"/role", url.Values{"role": {"boss"}}).redirectsTo(membersPath)
	own, _ := e.signInMember("ann")
	w.get(membersPath).want(200).has("ann admin", "Ann <b>Lee</b>", "ann@acme.example", "last signed in 30 Nov 2030")
	own.get(membersPath).want(200).has("ann admin you")
	w.post(membersPath+"/"+ann.ID+"/remove", nil).redirectsTo(membersPath)
	own.get(membersPath).redirectsTo("/login?ended=1&next=%2Forgs%2Facme%2Fsettings%2Fmembers")
	w.get(membersPath).want(200).has("removed 30 Nov 2030")
	w.post(membersPath+"/"+ann.ID+"/restore", nil).redirectsTo(membersPath)
	if got := e.members()[0]; got.RemovedAt != 0 || got.Role != member.Admin {
		t.Errorf("restored: %+v", got)
	}
	w.post(membersPath+"/mem_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/remove", nil).want(404)
}

func TestMemberFormErrors(t *testing.T) {
	e := newEnv(t)
	e.addMember("ann", member.Reader)
	w := e.signIn(e.admin)
	good := url.Values{"issuer": {provider}, "subject": {"bob"}, "dn": {"cn=bob,ou=people-dev,o=acme"}, "role": {"reader"}}

	for name, test := range map[string]struct{ field, value, want string }{
		"no role":            {"role", "", "reader, contributor, maintainer or admin"},
		"not a URL":          {"issuer", "okta", "not the URL of an issuer"},
		"no subject":         {"subject", " ", ""},
		"another unit":       {"dn", "cn=bob,ou=dev,o=acme", "must begin with people-"},
		"the DN of a member": {"dn", "cn=Ann,ou=people-dev,o=acme", "a DN is one person's forever"},
	} {
		form := url.Values{}
		for field, values := range good {
			form[field] = values
		}
		form.Set(test.field, test.value)
		p := w.post(membersPath+"/new", form)
		if p.status < 400 || p.status > 422 {
			t.Fatalf("%s: %d: %s", name, p.status, p.text())
		}
		p.hasError(test.field, test.want).has("Nothing was saved")
		checkHTML(t, "an admin", p)
	}
	w.post(membersPath+"/new", url.Values{"issuer": {provider}, "subject": {"ann"}, "role": {"reader"},
		"dn": {"cn=x,ou=people-dev,o=acme"}}).want(409).has("the account is the member mem_")
	if n := len(e.members()); n != 1 {
		t.Errorf("%d members, want 1", n)
	}
}

// Admins create rules and remove them.
func TestMemberRules(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get(rulesPath + "/new").want(200).has("New member rule")
	form := url.Values{"issuer": {provider}, "claim": {"groups"}, "value": {"dev"}, "role": {"maintainer"},
		"dn": {"cn={login},ou=people-dev,o=acme"}}
	w.post(rulesPath+"/new", form).redirectsTo(membersPath)
	w.get(membersPath).want(200).has("groups has dev maintainer", "cn={login},ou=people-dev,o=acme")
	form.Set("dn", "cn={login,ou=people-dev,o=acme")
	w.post(rulesPath+"/new", form).want(422).hasError("dn", "").has("Nothing was saved")

	rules := must.Get(client.Collect(e.host.MemberRules(t.Context(), "acme"), 0))(t)
	if len(rules) != 1 || rules[0].Role != member.Maintainer {
		t.Fatalf("the rules are %+v", rules)
	}
	w.post(rulesPath+"/"+rules[0].ID+"/remove", nil).redirectsTo(membersPath)
	w.get(membersPath).want(200).hasNot("groups has dev")
}

// A member sees and ends their own sign-ins, and an admin those of all. A session of an API token has
// none.
func TestSignIns(t *testing.T) {
	e := newEnv(t)
	e.addMember("ann", member.Reader)
	e.addMember("bob", member.Admin)
	ann, current := e.signInMember("ann")
	_, other := e.signInMember("ann")
	bob, ofBob := e.signInMember("bob")
	ann.get("/orgs/acme").want(200).has("ann reader Sign out").hasNot("API token")
	ann.get(signInsPath).want(200).has("Your sign-ins to acme", "this session").hasNot("cn=bob")
	bob.get(signInsPath).want(200).has("The people who are signed in", "cn=ann,ou=people-dev,o=acme", "cn=bob")
	e.signIn(e.admin).get(signInsPath).want(200).has("cn=ann,ou=people-dev,o=acme", "cn=bob").hasNot("this session")
	e.signIn(e.reader).get(signInsPath).want(200).has("Signed in with an API token").hasNot("cn=ann")

	ann.post(signInsPath+"/"+ofBob.ID+"/end", nil).want(404)
	e.signIn(e.reader).post(signInsPath+"/"+ofBob.ID+"/end", nil).want(403)
	ann.post(signInsPath+"/"+other.ID+"/end", nil).redirectsTo(signInsPath)
	ann.get(signInsPath).want(200).hasNot(other.ID[len(other.ID)-6:])
	bob.post(signInsPath+"/"+current.ID+"/end", nil).redirectsTo(signInsPath)
	ann.get(signInsPath).redirectsTo("/login?ended=1&next=%2Forgs%2Facme%2Fsettings%2Fsign-ins")
}

// Error pages for members name the role that is too low, not the scope of an API token.
func TestPagesByRole(t *testing.T) {
	e := newEnv(t)
	for subject, r := range map[string]member.Role{"ann": member.Contributor, "mia": member.Maintainer} {
		e.addMember(subject, r)
	}
	ann, _ := e.signInMember("ann")
	ann.get(tokensPath).want(403).has("role admin required: you are contributor")
	ann.get("/orgs/umbrella").want(403).has("you are signed in to org acme, not umbrella")
	ann.get("/orgs/acme/repos/api/policy").want(200).hasNot("Edit")

	mia, _ := e.signInMember("mia")
	p := mia.get("/orgs/acme/repos/api/policy").want(200).has("Edit", "Webhooks")
	if strings.Contains(p.text(), "API token") {
		t.Errorf("the page speaks of API tokens: %s", p.text())
	}
	mia.get("/orgs/acme/repos/api/policy/edit").want(200)
	mia.get("/orgs/acme/repos/api/webhooks").want(200)
	mia.get(membersPath).want(403).has("role admin required: you are maintainer")
}

// The list of tokens shows who created each, and for which repos it is.
func TestTokensOfRepos(t *testing.T) {
	e := newEnv(t)
	e.addMember("ann", member.Admin)
	w, signIn := e.signInMember("ann")
	form := url.Values{"name": {"limited"}, "scope": {"maintain"}, "expires_in": {"never"}, "repos": {" api,\tapi "}}
	w.post(tokensPath+"/new", form).want(201).has("/v1/orgs/acme/repos/api'")
	w.get(tokensPath).want(200).has("limited maintain", "by cn=ann,ou=people-dev,o=acme ("+signIn.ID+")", "only for api")
	created := e.tokens()[3]
	if strings.Join(created.Repos, " ") != "api" || created.Scope != ledger.Maintain {
		t.Errorf("created %+v", created)
	}
}
