package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server"
)

// The cookie of a sign-in is short-lived. Scripts, forms of other sites and, over https, other hosts
// have no access to it. Neither the cookie nor the URL has the session.
func TestFlowCookie(t *testing.T) {
	for _, test := range []struct{ base, origin, want string }{
		{"", "", "ledgerd-sign-in="},
		{"", "https://ledger.example.com", "__Host-ledgerd-sign-in="},
		{"/tools/ledger", "https://ledger.example.com", "__Secure-ledgerd-sign-in="},
	} {
		e := newSignInEnvWith(t, server.Config{Base: test.base})
		w := e.browser()
		if test.origin != "" {
			w.header = map[string]string{"Origin": test.origin}
		}
		cookies := w.get("/login/with/okta").want(303).header.Values("Set-Cookie")
		rest := "; Path=" + test.base + "/; Expires=Sat, 30 Nov 2030 09:10:00 GMT; HttpOnly"
		if test.base != "" {
			rest = strings.Replace(rest, "/;", ";", 1)
		}
		if test.origin != "" {
			rest += "; Secure"
		}
		rest += "; SameSite=Lax"
		if len(cookies) != 1 || !strings.HasPrefix(cookies[0], test.want) || !strings.HasSuffix(cookies[0], rest) {
			t.Errorf("%s%s: the cookies are %q, want %s…%s", test.origin, test.base, cookies, test.want, rest)
		}
	}
}

// Behind a proxy with TLS, the cookies are for HTTPS also in a browser that does not show that it uses it.
func TestCookiesBehindAProxy(t *testing.T) {
	e := newSignInEnvAt(t, "https://ledger.example.com", server.Config{})
	w := e.browser()
	keep := func(p page, name string) { // the browser, which uses HTTP here, does not
		t.Helper()
		set := (&http.Response{Header: p.want(303).header}).Cookies()
		i := slices.IndexFunc(set, func(c *http.Cookie) bool { return c.Name == name && c.Value != "" })
		if i < 0 {
			t.Fatalf("%s sets %s, want %s", p.what, set, name)
		}
		cookie := set[i]
		if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie is %s", cookie)
		}
		w.header = map[string]string{"Cookie": cookie.Name + "=" + cookie.Value}
	}

	begun := w.get("/login/with/okta")
	keep(begun, "__Host-ledgerd-sign-in")
	keep(w.get(e.visit(begun.header.Get("Location"))), "__Host-ledgerd")
	w.get("/orgs/acme").want(200)
}

// A sign-in with a provider never leads to another site.
func TestOpenRedirect(t *testing.T) {
	e := newSignInEnv(t)
	for next, want := range map[string]string{
		"/orgs/acme?a=b":        "/orgs/acme?a=b",
		"":                      "/",
		"https://evil.example/": "/",
		"//evil.example/":       "/",
		`/\evil.example/`:       "/",
		"/.//evil.example":      "/",
		"javascript:alert(1)":   "/",
	} {
		w := e.browser()
		e.signInAt(w, "/login/with/okta?"+url.Values{"next": {next}}.Encode()).redirectsTo(want)
	}
	// A path in the answer of the provider has no effect.
	w := e.browser()
	w.get(changed(t, e.begin(w, "/login/with/okta"), "next", "https://evil.example/")).redirectsTo("/")
}

// An attacker gets a code for their own account, and has a victim's browser open the callback.
func TestLoginCSRF(t *testing.T) {
	e := newSignInEnv(t)
	attacker, victim := e.browser(), e.browser()
	path := e.begin(attacker, "/login/with/okta")
	e.wantRefused(victim, victim.get(path), 401, "did not begin in this browser")

	victim.get("/login/with/okta").want(303) // even if the victim is about to sign in
	e.wantRefused(victim, victim.get(path), 401, "another sign-in")
}

// An attacker has a victim's code, and redeems it in their own browser.
func TestCodeInjection(t *testing.T) {
	e := newSignInEnv(t)
	attacker, victim := e.browser(), e.browser()
	stolen := parse(t, e.begin(victim, "/login/with/okta")).Query().Get("code")
	own := e.begin(attacker, "/login/with/okta")
	e.wantRefused(attacker, attacker.get(changed(t, own, "code", stolen)), 401, "does not accept the code")
}

// The state is that of the browser's latest sign-in, and counts once.
func TestState(t *testing.T) {
	e := newSignInEnv(t)
	for name, state := range map[string]string{"missing": "", "wrong": strings.Repeat("A", 43)} {
		w := e.browser()
		path := e.begin(w, "/login/with/okta")
		e.wantRefused(w, w.get(changed(t, path, "state", state)), 401, "another sign-in")
		t.Log(name)
	}

	w := e.browser()
	first := e.begin(w, "/login/with/okta")
	second := e.begin(w, "/login/with/okta")
	kept := e.withCookies(w)
	w.get(second).want(303)
	e.wantRefused(kept, kept.get(second), 401, "does not accept the code") // the provider has seen it
	e.wantRefused(kept, kept.get(first), 401, "did not begin")
}

// A state counts once even if the provider accepts a code twice.
func TestReplayedState(t *testing.T) {
	e := newSignInEnv(t)
	e.okta.KeepCodes = true
	w := e.browser()
	path := e.begin(w, "/login/with/okta")
	kept := e.withCookies(w)
	w.get(path).want(303)
	e.wantRefused(kept, kept.get(path), 401, "was completed before")
}

// An answer counts only at the callback of the provider with which the sign-in began, and only if it
// is from that provider.
func TestMixedUpProviders(t *testing.T) {
	e := newSignInEnv(t)
	w := e.browser()
	path := e.begin(w, "/login/with/okta")
	e.wantRefused(w, w.get(strings.Replace(path, "okta", "gitlab", 1)), 401, "another provider")

	w = e.browser()
	path = e.begin(w, "/login/with/okta")
	e.wantRefused(w, w.get(changed(t, path, "iss", e.gitlab.URL)), 401, "the answer is not from Okta")
	w = e.browser()
	path = e.begin(w, "/login/with/okta")
	e.wantRefused(w, w.get(changed(t, path, "iss", "")), 401, "does not name Okta as its issuer")
}

// An account of another provider with the same subject is another person.
func TestSubjectOfAnotherProvider(t *testing.T) {
	e := newSignInEnv(t)
	w := e.browser()
	e.wantRefused(w, e.signInAt(w, "/login/with/gitlab"), 401, "may not sign in to any org", e.gitlab.URL)
}

// An account that an org does not admit learns nothing about it, not even whether it exists.
func TestAccountIsNotAdmitted(t *testing.T) {
	e := newSignInEnv(t)
	e.createOrg("globex")
	e.createOrg("archived")
	_, err := e.host.ChangeOrg(t.Context(), "archived", ledger.OrgChange{Archived: new(true)})
	must.OK(t, err)
	e.createOrg("deleted")
	must.OK(t, e.host.DeleteOrg(t.Context(), "deleted"))
	removed, err := e.db.AddMember(t.Context(), "globex", member.NewMember{Issuer: e.okta.URL, Subject: "eve",
		DN: "cn=eve,ou=people-dev,o=globex", Role: member.Admin})
	must.OK(t, err)
	_, err = e.db.ChangeMember(t.Context(), "globex", removed.ID, member.Change{Removed: new(true)})
	must.OK(t, err)
	e.okta.SignInAs(person("eve", "sales"))

	texts := make(map[string]bool)
	for _, org := range []string{"acme", "globex", "archived", "deleted", "none"} {
		w := e.browser()
		p := e.signInAt(w, "/login/with/okta?org="+org)
		if p.status != 401 {
			t.Errorf("%s: %d %s", org, p.status, p.text())
		}
		p.has("this account may not sign in to org " + org)
		texts[strings.ReplaceAll(p.body, org, "ORG")] = true
	}
	if len(texts) != 1 {
		t.Errorf("the answers differ: %v", texts)
	}
	w := e.browser()
	e.wantRefused(w, e.signInAt(w, "/login/with/okta"), 401, "may not sign in to any org").hasNot("acme", "globex")
}

// Failed sign-ins of an address are limited. Those that succeed are not affected.
func TestFailedSignInsAreLimited(t *testing.T) {
	e := newSignInEnvWith(t, server.Config{Limits: server.Limits{FailedSignIns: 3}})
	for i := range 5 {
		p := e.browser().get("/login/callback/okta?code=a&state=b")
		if want := map[bool]int{true: 401, false: 429}[i < 3]; p.status != want {
			t.Errorf("failure %d: %d, want %d", i+1, p.status, want)
		}
		if p.status == 429 && p.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	e.signInAt(e.browser(), "/login/with/okta").redirectsTo("/")
}

// The query of a link is checked before the browser is sent to the provider.
func TestInvalidSignIns(t *testing.T) {
	e := newSignInEnv(t)
	for path, want := range map[string]int{
		"/login/with/none":                    404,
		"/login/callback/none":                404,
		"/login/with/okta?org=A%20B":          400,
		"/login/with/okta?max_age=901":        400,
		"/login/with/okta?max_age=-1":         400,
		"/login/with/okta?max_age=1.5":        400,
		"/login/with/okta?max_age=900":        303,
		"/login/with/okta?max_age=0&org=acme": 303,
	} {
		e.browser().get(path).want(want)
	}
}
