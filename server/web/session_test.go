package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestSignIn(t *testing.T) {
	e := newEnv(t)
	w := e.browser()
	w.get("/").redirectsTo("/login")
	w.get("/orgs/acme").redirectsTo("/login?next=%2Forgs%2Facme")
	w.get("/login?next=%2Forgs%2Facme").want(200).has("Sign in", "API token")

	p := w.post("/login", url.Values{"token": {" " + e.reader + "\n"}, "next": {"/orgs/acme?cursor=x"}}).redirectsTo(
		"/orgs/acme?cursor=x")
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"ledgerd=", "; Path=/", "; HttpOnly", "; SameSite=Lax",
		"; Expires=Sat, 30 Nov 2030 21:00:00 GMT"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, want %q in it", cookie, want)
		}
	}
	if strings.Contains(cookie, "ldg_") {
		t.Errorf("the cookie contains the token")
	}
	w.get("/orgs/acme").want(200).has("read of acme", "Sign out")
	w.get("/").redirectsTo("/orgs/acme")
	w.get("/login").redirectsTo("/")
}

func TestSignInRefused(t *testing.T) {
	e := newEnv(t)
	revoked := e.token("acme", ledger.Admin)
	must.OK(t, e.host.RevokeToken(t.Context(), "acme", revoked.ID))
	expired, err := e.host.CreateToken(
		t.Context(), "acme", ledger.NewToken{Name: "brief", Scope: ledger.Read, ExpiresAt: e.clock.time().Add(time.Minute)})
	must.OK(t, err)
	e.clock.advance(time.Minute)

	for name, test := range map[string]struct{ token, want string }{
		"none":        {"", "begin with ldg_"},
		"not a token": {"hello<b>", "begin with ldg_"},
		"truncated":   {e.admin[:30], "copy it again in full"},
		"unknown":     {ledger.NewSecret(), "unknown API token"},
		"revoked":     {revoked.Secret, "revoked"},
		"expired":     {expired.Secret, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.in(t).browser()
			p := w.post("/login", url.Values{"token": {test.token}, "next": {"/orgs/acme"}}).want(401).has(test.want)

			if test.token != "" {
				p.hasNot(test.token)
			}
			if p.header.Get("Set-Cookie") != "" {
				t.Error("the response sets a cookie")
			}
			if next := p.elements("input", "name", "next"); len(next) != 1 || attribute(next[0], "value") != "/orgs/acme" {
				t.Error("the form lost the next page")
			}
			w.get("/orgs/acme").want(303)
		})
	}
}

// Signing in never redirects to another site.
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
			t.Errorf("next %q: the form has %q, want %q", next, got, want)
		}
	}
}

// Over HTTPS, also behind a proxy, the cookie cannot be set by other hosts and is
// not sent over plain HTTP.
func TestCookieOverHTTPS(t *testing.T) {
	e := newEnv(t)
	w := e.browser()
	w.header = map[string]string{"Origin": strings.Replace(e.url, "http:", "https:", 1)}
	cookie := w.post("/login", url.Values{"token": {e.reader}}).want(303).header.Get("Set-Cookie")
	for _, want := range []string{"__Host-ledgerd=", "; Secure", "; Path=/", "; HttpOnly", "; SameSite=Lax"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, want %q in it", cookie, want)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Errorf("the cookie is %q, want no domain", cookie)
	}
	name, _, _ := strings.Cut(cookie, ";")
	w.header = map[string]string{"Cookie": name}
	w.get("/orgs/acme").want(200)
}

// Over HTTPS, a cookie that plain HTTP can set is ignored.
func TestPlainCookie(t *testing.T) {
	e := newEnv(t)
	secret := secretOf(e.signIn(e.reader))
	for name, test := range map[string]struct {
		host   string
		header map[string]string
		cookie string
		wantIn bool
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
			if in := w.Code == 200; in != test.wantIn {
				t.Errorf("%d %s: signed in: %t, want %t", w.Code, w.Header().Get("Location"), in, test.wantIn)
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

	// The cookie is no longer valid.
	w.client.Jar.SetCookies(parse(t, e.url), stolen)
	w.get("/orgs/acme").redirectsTo("/login?ended=1&next=%2Forgs%2Facme")
}

// Signing in again ends the previous session, and signing out ends the sessions of
// both cookies.
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

// secretOf returns the value of a browser's session cookie.
func secretOf(w *browser) string { return w.client.Jar.Cookies(parse(w.t, w.url))[0].Value }

func TestSessionsEnd(t *testing.T) {
	e := newEnv(t)
	token := e.token("acme", ledger.Admin)

	for name, end := range map[string]func(){
		"revoked": func() { must.OK(t, e.host.RevokeToken(t.Context(), "acme", token.ID)) },
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
			other := e.withCookies(w) // w loses its cookies when the session ends

			end()
			w.header = map[string]string{"Accept": "text/event-stream"}
			w.get("/orgs/acme/events").want(303)
			w.header = nil
			other.get("/orgs/acme").redirectsTo("/login?ended=1&next=%2Forgs%2Facme")
			w.get("/login?ended=1").want(200).has("Your session has ended")
		})
	}
}

// After a form without a session, signing in leads back to its page.
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

// A policy that is submitted after the session has ended is not lost.
func TestUnsavedPolicy(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	form := w.get(policyPath + "/edit").want(200)
	e.clock.advance(12 * time.Hour)
	const mine = "{\r\n</textarea><b>mine</b>"
	p := w.edit(form, "save", "document", mine).want(401).has("Your session has ended", "Your unsaved policy",
		"</textarea><b>mine</b>")
	if draft := p.elements("textarea", "id", "draft"); len(draft) != 1 ||
		draft[0].FirstChild.Data != "{\n</textarea><b>mine</b>" {
		t.Error("the page does not show the policy")
	}
	if next := p.value("next"); next != policyPath+"/edit" {
		t.Errorf("next: %q", next)
	}
	checkHTML(t, "signed out", p)
	w.post(policyPath+"/edit", url.Values{"document": {strings.Repeat("x", 64<<10)}}).redirectsTo(
		"/login?" + url.Values{"next": {policyPath + "/edit"}}.Encode())
}

// withCookies returns a new browser with the cookies of another.
func (e *env) withCookies(other *browser) *browser {
	w := e.browser()
	w.client.Jar.SetCookies(parse(e.t, e.url), other.client.Jar.Cookies(parse(e.t, e.url)))
	return w
}

// A session gives no access to other orgs, and does not reveal whether they exist.
func TestOtherOrg(t *testing.T) {
	e := newEnv(t)
	_, err := e.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "umbrella"})
	must.OK(t, err)
	example := e.examples()
	stranger := e.signIn(e.token("umbrella", ledger.Admin).Secret)
	for _, rt := range routes() {
		if !strings.Contains(rt.Pattern, "{org}") {
			continue
		}
		here := stranger.send(rt.Method, example(rt.Pattern), url.Values{}).want(403)
		none := stranger.send(rt.Method, strings.Replace(example(rt.Pattern), "acme", "none", 1), url.Values{}).want(403)
		if strings.ReplaceAll(here.body, "acme", "none") != none.body {
			t.Errorf("%s reveals whether the org exists", here.what)
		}
	}
}

func parse(t testing.TB, text string) *url.URL {
	t.Helper()
	return must.Get(url.Parse(text))(t)
}
