package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestSignIn(t *testing.T) {
	e := newEnv(t)
	w := e.browser()
	w.get("/").redirectsTo("/login")
	w.get("/orgs/acme").redirectsTo("/login?next=%2Forgs%2Facme")
	w.get("/login?next=%2Forgs%2Facme").want(200).has("Sign in", "API token")

	answer := w.post("/login", url.Values{"token": {" " + e.reader + "\n"}, "next": {"/orgs/acme?cursor=x"}}).redirectsTo(
		"/orgs/acme?cursor=x")
	cookie := answer.header.Get("Set-Cookie")
	for _, want := range []string{"ledgerd=", "; Path=/", "; HttpOnly", "; SameSite=Lax",
		"; Expires=Sat, 30 Nov 2030 21:00:00 GMT"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q: want %q in it", cookie, want)
		}
	}
	if strings.Contains(cookie, "ldg_") {
		t.Errorf("the cookie holds the token")
	}
	w.get("/orgs/acme").want(200).has("read of acme", "Sign out")
	w.get("/").redirectsTo("/orgs/acme")
	w.get("/login").redirectsTo("/")
}

func TestSignInRefused(t *testing.T) {
	e := newEnv(t)
	gone := e.token("acme", ledger.Admin)
	check(t, e.host.RevokeToken(t.Context(), "acme", gone.ID))
	expired, err := e.host.CreateToken(
		t.Context(), "acme", ledger.NewToken{Name: "brief", Scope: ledger.Read, ExpiresAt: e.clock.time().Add(time.Minute)})
	check(t, err)
	e.clock.advance(time.Minute)
	for name, test := range map[string]struct{ token, says string }{
		"none":      {"", "begin with ldg_"},
		"not ours":  {"hello<b>", "begin with ldg_"},
		"not whole": {e.admin[:30], "copy it again in full"},
		"not known": {ledger.NewSecret(), "unknown API token"},
		"revoked":   {gone.Secret, "revoked"},
		"expired":   {expired.Secret, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.in(t).browser()
			answer := w.post("/login", url.Values{"token": {test.token}, "next": {"/orgs/acme"}}).want(401).has(test.says)
			if test.token != "" {
				answer.hasNot(test.token)
			}
			if answer.header.Get("Set-Cookie") != "" {
				t.Error("it sets a cookie")
			}
			if next := answer.elements("input", "name", "next"); len(next) != 1 || attribute(next[0], "value") != "/orgs/acme" {
				t.Error("it forgets where to go on")
			}
			w.get("/orgs/acme").want(303)
		})
	}
}

// Signing in never leads to another site.
func TestSignInRedirect(t *testing.T) {
	e := newEnv(t)
	for next, want := range map[string]string{
		"/orgs/acme":             "/orgs/acme",
		"/orgs/acme?a=b#c":       "/orgs/acme?a=b#c",
		"":                       "/",
		"orgs":                   "/",
		"https://evil.example/":  "/",
		"//evil.example/":        "/",
		`/\evil.example/`:        "/",
		"/\n/evil.example":       "/",
		"/\t/evil.example":       "/",
		"javascript:alert(1)":    "/",
		`\\evil.example`:         "/",
		"/\x00/evil.example":     "/",
		"/\x7f":                  "/",
		"///evil.example":        "/",
		"/.//evil.example":       "/",
		"/orgs/..//evil.example": "/",
		"/%5cevil.example":       "/%5cevil.example",
		"//evil.example@acme/":   "/",
		" //evil.example":        "/",
		"HTTPS:evil.example":     "/",
	} {
		e.browser().post("/login", url.Values{"token": {e.reader}, "next": {next}}).redirectsTo(want)
		if got := attribute(e.browser().get("/login?"+url.Values{"next": {next}}.Encode()).elements("input", "name",
			"next")[0], "value"); got != want {
			t.Errorf("the form leads from %q to %q, want %q", next, got, want)
		}
	}
}

// Over https, also behind a proxy, the cookie is one that no other host can
// set and no plain connection carries.
func TestCookieOverHTTPS(t *testing.T) {
	e := newEnv(t)
	w := e.browser()
	w.header = map[string]string{"Origin": strings.Replace(e.url, "http:", "https:", 1)}
	cookie := w.post("/login", url.Values{"token": {e.reader}}).want(303).header.Get("Set-Cookie")
	for _, want := range []string{"__Host-ledgerd=", "; Secure", "; Path=/", "; HttpOnly", "; SameSite=Lax"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q: want %q in it", cookie, want)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Errorf("the cookie is %q: it names a domain", cookie)
	}
	name, _, _ := strings.Cut(cookie, ";")
	w.header = map[string]string{"Cookie": name}
	w.get("/orgs/acme").want(200)
}

// Over https a cookie that a plain connection can set is no session.
func TestPlainCookie(t *testing.T) {
	e := newEnv(t)
	secret := secretOf(e.signIn(e.reader))
	for name, test := range map[string]struct {
		host    string
		header  map[string]string
		cookie  string
		wantsIn bool
	}{
		"plain http":    {"ledger.example.com", nil, "ledgerd", true},
		"https, a link": {"ledger.example.com", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", false},
		"https, a port": {"ledger.example.com:8443", map[string]string{"Sec-Fetch-Site": "same-origin"},
			"ledgerd", false},
		"https, an address": {"192.0.2.7", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", false},
		"https, an origin":  {"localhost", map[string]string{"Origin": "https://localhost"}, "ledgerd", false},
		"https, its own cookie": {"ledger.example.com", map[string]string{"Sec-Fetch-Site": "none"}, "__Host-ledgerd",
			true},
		"plain http, an origin": {"ledger.example.com", map[string]string{"Origin": "http://ledger.example.com"},
			"ledgerd", true},
		"this machine":              {"localhost:8080", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", true},
		"this machine, by a name":   {"Ledger.localhost", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", true},
		"this machine, by address":  {"127.0.0.2:8080", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", true},
		"this machine, over IPv6":   {"[::1]:8080", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", true},
		"not this machine by name":  {"localhost.example.com", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", false},
		"not this machine, no port": {"[2001:db8::1]", map[string]string{"Sec-Fetch-Site": "none"}, "ledgerd", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/orgs/acme", nil)
			r.Host = test.host
			for name, value := range test.header {
				r.Header.Set(name, value)
			}
			r.Header.Set("Cookie", test.cookie+"="+secret)
			w := httptest.NewRecorder()
			e.site.Handler().ServeHTTP(w, r)
			if in := w.Code == 200; in != test.wantsIn {
				t.Errorf("%d %s: in: %t, want %t", w.Code, w.Header().Get("Location"), in, test.wantsIn)
			}
		})
	}
}

func TestSignOut(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	stolen := w.client.Jar.Cookies(parse(t, e.url))
	other := e.signIn(e.admin)
	w.post("/logout", nil).redirectsTo("/login")
	w.get("/orgs/acme").redirectsTo("/login?next=%2Forgs%2Facme")
	w.post("/logout", nil).redirectsTo("/login")
	other.get("/orgs/acme").want(200)

	// What was in the cookie is of no use any more.
	w.client.Jar.SetCookies(parse(t, e.url), stolen)
	w.get("/orgs/acme").redirectsTo("/login?ended=1&next=%2Forgs%2Facme")
}

// Signing in again ends the session before, and signing out those of both cookies.
func TestSignInEndsOldSession(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	first := e.withCookies(w)
	w.post("/login", url.Values{"token": {"wrong"}}).want(401)
	first.get("/orgs/acme").want(200)
	w.post("/login", url.Values{"token": {e.admin}}).want(303)
	w.get("/orgs/acme").want(200).has("admin of acme")
	first.get("/orgs/acme").want(303)

	plain, secure := e.signIn(e.reader), e.signIn(e.reader)
	both := e.browser()
	both.header = map[string]string{"Cookie": "ledgerd=" + secretOf(plain) + "; __Host-ledgerd=" + secretOf(secure)}
	both.post("/logout", nil).redirectsTo("/login")
	plain.get("/orgs/acme").want(303)
	secure.get("/orgs/acme").want(303)
}

// secretOf returns what a browser's session cookie holds.
func secretOf(w *browser) string { return w.client.Jar.Cookies(parse(w.t, w.url))[0].Value }

func TestSessionsEnd(t *testing.T) {
	e := newEnv(t)
	token := e.token("acme", ledger.Admin)
	for name, end := range map[string]func(){
		"revoked": func() { check(t, e.host.RevokeToken(t.Context(), "acme", token.ID)) },
		"expired": func() { e.clock.advance(12 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			e := e.in(t)
			secret := e.admin
			if name == "revoked" {
				secret = token.Secret
			}
			w := e.signIn(secret)
			w.get("/orgs/acme").want(200)
			kept := e.withCookies(w) // the session's end takes them from w
			end()
			w.header = map[string]string{"Accept": "text/event-stream"}
			w.get("/orgs/acme/events").want(303)
			w.header = nil
			kept.get("/orgs/acme").redirectsTo("/login?ended=1&next=%2Forgs%2Facme")
			w.get("/login?ended=1").want(200).has("Your session has ended")
		})
	}
}

// Who sends a form when the session is over comes back to its page.
func TestPathBackFromForms(t *testing.T) {
	e := newEnv(t)
	for path, back := range map[string]string{
		identitiesPath + "/new":                      identitiesPath + "/new",
		policyPath + "/edit":                         policyPath + "/edit",
		tokensPath + "/new":                          tokensPath + "/new",
		tokensPath + "/tok_1/revoke":                 tokensPath,
		"/orgs/acme/repos/a%20b/webhooks/whk_1/ping": "/orgs/acme/repos/a%20b/webhooks/whk_1",
		"/orgs/acme/repos/api/webhooks/whk_1/deliveries/dlv_1/redeliver"://
		"/orgs/acme/repos/api/webhooks/whk_1/deliveries/dlv_1",
	} {
		e.browser().post(path, nil).redirectsTo("/login?" + url.Values{"next": {back}}.Encode())
	}
}

// What somebody has written of a policy is not lost with the session.
func TestUnsavedPolicy(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	form := w.get(policyPath + "/edit").want(200)
	e.clock.advance(12 * time.Hour)
	const mine = "{\r\n</textarea><b>mine</b>"
	p := w.edit(form, "save", "document", mine).want(401).has("Your session has ended", "Your unsaved policy",
		"</textarea><b>mine</b>")
	if kept := p.elements("textarea", "id", "draft"); len(kept) != 1 ||
		kept[0].FirstChild.Data != "{\n</textarea><b>mine</b>" {
		t.Error("it is not what was written")
	}
	if next := p.value("next"); next != policyPath+"/edit" {
		t.Errorf("it leads to %q", next)
	}
	checkHTML(t, "nobody", p)
	w.post(policyPath+"/edit", url.Values{"document": {strings.Repeat("x", 64<<10)}}).redirectsTo(
		"/login?" + url.Values{"next": {policyPath + "/edit"}}.Encode())
}

// withCookies returns a new browser with the cookies of another.
func (e *env) withCookies(other *browser) *browser {
	w := e.browser()
	w.client.Jar.SetCookies(parse(e.t, e.url), other.client.Jar.Cookies(parse(e.t, e.url)))
	return w
}

// The session of one org is of no use for another, and nobody learns whether
// there is one.
func TestOtherOrg(t *testing.T) {
	e := newEnv(t)
	_, err := e.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "umbrella"})
	check(t, err)
	example := e.examples()
	stranger := e.signIn(e.token("umbrella", ledger.Admin).Secret)
	for _, rt := range routes() {
		if !strings.Contains(rt.Pattern, "{org}") {
			continue
		}
		here := stranger.send(rt.Method, example(rt.Pattern), url.Values{}).want(403)
		none := stranger.send(rt.Method, strings.Replace(example(rt.Pattern), "acme", "none", 1), url.Values{}).want(403)
		if strings.ReplaceAll(here.body, "acme", "none") != none.body {
			t.Errorf("%s tells whether there is an org", here.what)
		}
	}
}

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	check(t, err)
	return u
}
