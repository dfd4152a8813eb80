package web_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store"
)

// join sends the form of a page that joins an org.
func (e *signInEnv) join(w *browser, p page, org string) page {
	e.t.Helper()
	fields := p.elements("input", "name", "key")
	if len(fields) == 0 || len(p.elements("button", "value", org)) != 1 {
		e.t.Fatalf("%s: no form to join %s: %s", p.what, org, p.body)
	}
	return w.post("/login/join", url.Values{"key": {attribute(fields[0], "value")}, "org": {org}})
}

// wantMembers checks the subjects of the members of an org.
func (e *signInEnv) wantMembers(org string, want ...string) {
	e.t.Helper()
	list := must.Get(client.Collect(e.host.Members(e.t.Context(), org), 0))(e.t)
	var got []string
	for _, m := range list {
		got = append(got, m.Subject)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		e.t.Errorf("the members of %s are %v, want %v", org, got, want)
	}
}

// A person whom rules of several orgs admit joins one of them. The others learn nothing.
func TestSeveralOrgs(t *testing.T) {
	e := newSignInEnv(t)
	e.createOrg("globex")
	e.createOrg("umbrella")
	e.admit("globex", e.okta.URL, "dev", member.Admin)
	w := e.browser()
	p := e.signInAt(w, "/login/with/okta?max_age=60&next=%2Forgs%2Fglobex").want(200).has("Choose an org", "Join acme",
		"Join globex", "the name cn=ann,ou=people-dev,o=globex with which you sign, your role admin").hasNot("umbrella")
	checkHTML(t, "several orgs", p)
	w.get("/orgs/acme").want(303)
	e.wantMembers("acme")
	e.wantMembers("globex")

	e.join(w, p, "globex").redirectsTo("/orgs/globex")
	w.get("/orgs/globex").want(200)
	w.get("/orgs/acme").want(403)
	e.wantMembers("acme")
	e.wantMembers("globex", "ann")
}

// A member of several orgs chooses the one for the session. Each link begins a new sign-in.
func TestMemberOfSeveralOrgs(t *testing.T) {
	e := newSignInEnv(t)
	e.createOrg("globex")
	e.signInAt(e.browser(), "/login/with/okta").redirectsTo("/")
	_, err := e.db.AddMember(t.Context(), "globex", member.NewMember{Issuer: e.okta.URL, Subject: "ann",
		DN: "cn=ann,ou=people-dev,o=globex", Role: member.Reader})
	must.OK(t, err)
	w := e.browser()
	e.join(w, e.signInAt(w, "/login/with/okta"), "globex").redirectsTo("/")
	p := e.signInAt(w, "/login/with/okta?max_age=60&next=%2Forgs%2Fglobex").want(200).has("Choose an org", "acme",
		"globex").hasNot("Join")
	checkHTML(t, "several orgs", p)
	const link = "/login/with/okta?max_age=60&next=%2Forgs%2Fglobex&org=globex"
	if len(p.elements("a", "href", link)) != 1 {
		t.Fatalf("no link %s", link)
	}
	e.signInAt(w, link).redirectsTo("/orgs/globex")
	w.get("/orgs/globex").want(200)
	w.get("/orgs/acme").want(403)
}

// The admin of an org writes a rule that all accounts fulfil. A member of another org joins only after a
// page has said what the admin will see, even by a link that names the org.
func TestAnOrgDoesNotClaimTheAccountsOfAnother(t *testing.T) {
	e := newSignInEnv(t)
	e.okta.SignInAs(person("ann", "dev", "everyone"))
	e.okta.TokenClaims = map[string]any{"name": "Ann <b>Lee</b>", "email": "ann@acme.example", "email_verified": true}
	e.signInAt(e.browser(), "/login/with/okta").redirectsTo("/")
	e.createOrg("evil")
	e.admit("evil", e.okta.URL, "everyone", member.Reader)

	for _, path := range []string{"/login/with/okta", "/login/with/okta?org=evil&next=%2Forgs%2Fevil"} {
		w := e.browser()
		p := e.signInAt(w, path).want(200).has("Join evil", "Admins of evil will see your account, your name "+
			"Ann <b>Lee</b> , your e-mail address ann@acme.example , the name cn=ann,ou=people-dev,o=evil with which you sign, "+
			"your role reader, and when you sign in.")
		checkHTML(t, "a second org", p)
		if hasAcme := len(p.elements("a", "href", "/login/with/okta?next=%2F&org=acme")) == 1; hasAcme ==
			strings.Contains(path, "evil") {
			t.Errorf("%s offers acme: %t", path, hasAcme)
		}
		w.get("/orgs/evil").want(303)
	}
	e.wantMembers("evil")
	events, err := e.db.Events(t.Context(), "evil", store.EventFilter{Query: store.Query{Limit: 500},
		Types: []ledger.EventType{ledger.AuditEvent{}.EventType()}})
	must.OK(t, err)
	for _, body := range events.Data {
		if strings.Contains(strings.ToLower(string(body)), "ann") {
			t.Errorf("evil has the event %s", body)
		}
	}

	// A refusal is not stored. The next sign-in offers the org again, and with consent it is joined.
	w := e.browser()
	p := e.signInAt(w, "/login/with/okta")
	e.join(w, p, "evil").redirectsTo("/")
	w.get("/orgs/evil").want(200)
	e.wantMembers("evil", "ann")
	e.signInAt(w, "/login/with/okta?org=evil&next=%2Forgs%2Fevil").redirectsTo("/orgs/evil")
}

// The admin of an org adds an account by its subject. A link that names the org neither ends the session in
// another org nor shows the admin anything, until the person agrees.
func TestAnOrgThatAddsAnAccountAsksIt(t *testing.T) {
	e := newSignInEnv(t)
	e.okta.TokenClaims = map[string]any{"name": "Ann Lee"}
	w := e.browser()
	e.signInAt(w, "/login/with/okta").redirectsTo("/")
	e.createOrg("evil")
	_, err := e.db.AddMember(t.Context(), "evil", member.NewMember{Issuer: e.okta.URL, Subject: "ann",
		DN: "cn=ann,ou=people-dev,o=evil", Role: member.Reader})
	must.OK(t, err)

	nameIn := func(org string) string {
		list := must.Get(client.Collect(e.host.Members(t.Context(), org), 0))(t)
		return list[0].Name
	}
	p := e.signInAt(w, "/login/with/okta?org=evil").want(200).has("Join evil", "your name Ann Lee")
	w.get("/orgs/acme").want(200)
	if name := nameIn("evil"); name != "" {
		t.Errorf("evil knows the name %q", name)
	}
	e.join(w, p, "evil").redirectsTo("/")
	w.get("/orgs/evil").want(200)
	if name := nameIn("evil"); name != "Ann Lee" {
		t.Errorf("after the consent, evil knows the name %q", name)
	}
}

// The form that joins an org works once, for ten minutes, and only from this site.
func TestJoining(t *testing.T) {
	e := newSignInEnv(t)
	e.createOrg("globex")
	e.createOrg("umbrella")
	e.admit("globex", e.okta.URL, "dev", member.Reader)
	e.admit("umbrella", e.gitlab.URL, "dev", member.Reader)
	choose := func(w *browser) (page, url.Values) {
		t.Helper()
		p := e.signInAt(w, "/login/with/okta").want(200)
		return p, url.Values{"key": {attribute(p.elements("input", "name", "key")[0], "value")}, "org": {"globex"}}
	}

	w := e.browser()
	_, form := choose(w)
	w.header = map[string]string{"Sec-Fetch-Site": "cross-site"}
	w.post("/login/join", form).want(403)
	w.header = nil
	w.post("/login/join", url.Values{"key": {"x"}, "org": {"globex"}}).want(401).has("start again")
	w.post("/login/join", url.Values{"key": form["key"], "org": {"A b"}}).want(400)
	e.wantMembers("globex")
	w.post("/login/join", form).want(303)
	w.post("/login/join", form).want(401).has("start again")

	// Without an offer, there is nothing to agree to.
	for _, org := range []string{"umbrella", "none"} {
		w := e.browser()
		e.okta.SignInAs(person("bob", "dev"))
		_, form := choose(w)
		form.Set("org", org)
		e.wantRefused(w, w.post("/login/join", form), 401, "this account may not sign in to org "+org)
	}
	_, form = choose(w)
	e.clock.advance(idp.FlowLife)
	w.post("/login/join", form).want(401).has("more than 10 minutes old")
	e.wantMembers("globex", "ann")
}

// An org that the host does not name cannot be signed in to with a provider, whatever its members and rules.
func TestTheHostNamesTheOrgsOfAProvider(t *testing.T) {
	e := newSignInEnv(t)
	e.createOrg("globex")
	e.admit("globex", e.okta.URL, "dev", member.Admin)
	e.providers[e.okta.URL] = []string{"acme"}
	w := e.browser()
	e.wantRefused(w, e.signInAt(w, "/login/with/okta?org=globex"), 401, "this account may not sign in to org globex")
	e.signInAt(w, "/login/with/okta").redirectsTo("/")
	w.get("/orgs/acme").want(200)
	e.wantMembers("globex")

	e.providers[e.okta.URL] = []string{"globex"}
	e.signInAt(e.browser(), "/login/with/okta").want(200).has("Join globex").hasNot("acme")
}
