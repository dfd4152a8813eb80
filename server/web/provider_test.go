package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp/idptest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

func TestSignInWithProvider(t *testing.T) {
	e := newSignInEnv(t)
	w := e.signIn(e.reader)
	former := e.withCookies(w)
	link := e.browser().get("/login?next=%2Forgs%2Facme%2Factivity").want(200).has("Sign in with Okta",
		"Sign in with GitLab", "API token").elements("a", "href", "/login/with/okta?next=%2Forgs%2Facme%2Factivity")
	if len(link) != 1 {
		t.Fatal("no link to the provider")
	}

	p := e.signInAt(w, attribute(link[0], "href")).redirectsTo("/orgs/acme/activity")
	w.get("/orgs/acme/activity").want(200).has("ann contributor", "Sign out")
	former.get("/orgs/acme").want(303)
	cookies := strings.Join(p.header.Values("Set-Cookie"), "\n")
	for _, want := range []string{"ledgerd=", "; Path=/; Expires=Sat, 30 Nov 2030 21:00:00 GMT; HttpOnly; SameSite=Lax",
		"ledgerd-sign-in=; Path=/; Expires=Thu, 01 Jan 1970"} {
		if !strings.Contains(cookies, want) {
			t.Errorf("the cookies are %s, want %q", cookies, want)
		}
	}

	signIns, err := e.db.SignIns(t.Context(), "acme", "", store.Query{Limit: 10})
	must.OK(t, err)
	if len(signIns.Data) != 1 || signIns.Data[0].Scope != ledger.Write || signIns.Data[0].AuthTime != e.clock.time() ||
		signIns.Data[0].DN != "cn=ann,ou=people-dev,o=acme" {
		t.Errorf("the sign-ins are %+v", signIns.Data)
	}
	w.post("/logout", nil).want(303)
	signIns, err = e.db.SignIns(t.Context(), "acme", "", store.Query{Limit: 10})
	must.OK(t, err)
	if len(signIns.Data) != 0 {
		t.Errorf("after signing out, the sign-ins are %+v", signIns.Data)
	}
}

func TestSignInBelowBasePath(t *testing.T) {
	e := newSignInEnvWith(t, server.Config{Base: "/tools/ledger"})
	w := e.browser()
	path := e.begin(w, "/login/with/okta?next="+url.QueryEscape("/tools/ledger/orgs/acme"))
	w.get(path).redirectsTo("/tools/ledger/orgs/acme")
	w.get("/orgs/acme").want(200)
	other := e.browser()
	other.get(e.begin(other, "/login/with/okta?next=%2Forgs%2Facme")).redirectsTo("/tools/ledger/")
}

func TestPersonDeclines(t *testing.T) {
	e := newSignInEnv(t)
	e.okta.ChangeAnswer = func(answer url.Values) { answer.Del("code"); answer.Set("error", "access_denied") }
	w := e.browser()
	p := e.wantRefused(w, e.signInAt(w, "/login/with/okta?org=acme&max_age=60&next=%2Forgs%2Facme"), 401, "access_denied")
	if len(p.elements("a", "href", "/login/with/okta?max_age=60&next=%2Forgs%2Facme&org=acme")) != 1 {
		t.Error("the page does not lead back to the sign-in")
	}
}

// A provider that is down does not keep people from signing in with a token.
func TestProviderIsDown(t *testing.T) {
	e := newSignInEnv(t)
	e.okta.Replace(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	w := e.browser()
	for range 5 { // these do not count as failures of the person
		e.wantRefused(w, w.get("/login/with/okta"), 503, "Okta cannot be used now")
	}
	w.post("/login", url.Values{"token": {e.reader}}).want(303)
	w.get("/orgs/acme").want(200)

	e.okta.Replace(nil)
	e.clock.advance(5 * time.Second)
	e.signInAt(e.browser(), "/login/with/okta").redirectsTo("/")
}

// The cookie of a sign-in is deleted even if an unexpected error ends the sign-in.
func TestSignInWithoutDatabase(t *testing.T) {
	e := newSignInEnv(t)
	w, toOrg := e.browser(), e.browser()
	paths := map[*browser]string{
		w:     e.begin(w, "/login/with/okta"),
		toOrg: e.begin(toOrg, "/login/with/okta?org=acme"),
	}
	must.OK(t, e.db.Close())
	for w, path := range paths {
		p := w.get(path).want(500)
		cookies := strings.Join(p.header.Values("Set-Cookie"), "\n")
		if !strings.Contains(cookies, "ledgerd-sign-in=; Path=/; Expires=Thu, 01 Jan 1970") {
			t.Errorf("%s: the cookies are %s", p.what, cookies)
		}
	}
}

// A former member's session ends at once, and they cannot sign in again.
func TestRemovedMember(t *testing.T) {
	e := newSignInEnv(t)
	w := e.browser()
	e.signInAt(w, "/login/with/okta").want(303)
	members, err := e.db.Members(t.Context(), "acme", store.Query{Limit: 10})
	must.OK(t, err)
	_, err = e.db.ChangeMember(t.Context(), "acme", members.Data[0].ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	w.get("/orgs/acme").want(303)
	e.wantRefused(w, e.signInAt(w, "/login/with/okta?org=acme"), 401, "may not sign in to org acme")
}

// A link can require a signed-in person to sign in again, to the same org.
func TestSignInAgain(t *testing.T) {
	e := newSignInEnv(t)
	old := person("ann", "dev")
	old.AuthTime = e.clock.now().Add(-time.Hour)
	e.okta.SignInAs(old)
	w := e.browser()
	e.signInAt(w, "/login/with/okta").want(303)
	if got := e.authTime(); got != ledger.TimeOf(old.AuthTime) {
		t.Errorf("auth_time is %s", got)
	}

	w.get("/login?next=%2Forgs%2Facme").redirectsTo("/orgs/acme")
	p := w.get("/login?again=1&next=%2Forgs%2Facme").want(200).has("Sign in again")
	checkHTML(t, "again", p)
	if len(p.elements("input", "name", "token")) > 0 {
		t.Error("the page asks for a token, which does not show who it is")
	}
	const link = "/login/with/okta?max_age=0&next=%2Forgs%2Facme&org=acme"
	if len(p.elements("a", "href", link)) != 1 {
		t.Fatalf("no link %s: %s", link, p.body)
	}
	e.signInAt(w, link).redirectsTo("/orgs/acme")
	if got := e.authTime(); got != e.clock.time() {
		t.Errorf("auth_time is %s, want now", got)
	}

	// A provider that does not ask the person again is refused.
	e.okta.TokenClaims = map[string]any{"auth_time": old.AuthTime.Unix()}
	e.signInAt(w, link).want(401).has("the ID token of Okta is not valid")
}

// The log has neither codes nor states nor the secrets of clients.
func TestSignInsInLog(t *testing.T) {
	e := newSignInEnv(t)
	w := e.browser()
	path := e.begin(w, "/login/with/okta")
	query := parse(t, path).Query()
	w.get(changed(t, path, "code", "x")).want(401)
	e.okta.Replace(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			http.Error(w, "echo "+r.FormValue("code")+r.FormValue("code_verifier"), http.StatusBadRequest)
			return
		}
		e.okta.ServeHTTP(w, r)
	})
	w = e.browser()
	path = e.begin(w, "/login/with/okta")
	w.get(path).want(503)
	for _, secret := range []string{query.Get("code"), query.Get("state"), idptest.ClientSecret, "echo",
		parse(t, path).Query().Get("code")} {
		if strings.Contains(e.log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, e.log)
		}
	}
}
