package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

const tokensPath = "/orgs/acme/settings/tokens"

// tokenText matches the secret of a token.
var tokenText = regexp.MustCompile(`ldg_\w{20,}`)

func (e *env) tokens() []ledger.Token {
	e.t.Helper()
	return must.Get(client.Collect(e.host.Tokens(e.t.Context(), "acme"), 0))(e.t)
}

func TestCreateToken(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	w.get("/orgs/acme/settings").redirectsTo(tokensPath)
	if href := attribute(w.get(tokensPath).want(200).elements("a", "class", "button primary")[0], "href"); href !=
		tokensPath+"/new" {
		t.Errorf("New token links to %s", href)
	}
	form := w.get(tokensPath+"/new").want(200).has("New token", "read: view everything", "in 90 days")
	if got := attribute(form.elements("form", "method", "post")[1], "action"); got != tokensPath+"/new" {
		t.Errorf("action of the form: %s", got)
	}

	p := w.post(tokensPath+"/new", url.Values{"name": {" ci "}, "scope": {"write"}, "expires_in": {"30d"}}).want(201).
		has("Created token ci", "won't be shown again", "Scope write , expires 30 Dec 2030")
	secret := tokenText.FindString(p.text())
	if line := "curl -H 'Authorization: Bearer " + secret + "' '" + e.url + "/v1/orgs/acme/repos'"; secret == "" ||
		!strings.Contains(p.text(), line) {
		t.Errorf("the page does not show %s: %s", line, p.text())
	}
	if got := p.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: %q", got)
	}
	created := e.tokens()[3]
	if created.Name != "ci" || created.Scope != ledger.Write || created.ExpiresAt != e.clock.time().Add(30*24*time.Hour) {
		t.Errorf("created %+v", created)
	}

	// The token works, and is not shown again.
	e.signIn(secret).get("/orgs/acme").want(200).has("ci", "write")
	w.get(tokensPath).want(200).has("ci write", created.ID[len(created.ID)-6:]).hasNot("ldg_")
	w.get("/orgs/acme").want(200).hasNot("ldg_")
	if strings.Contains(e.log.String(), secret) {
		t.Error("the token is in the log")
	}
}

// A custom date takes precedence over the lifetime.
func TestTokenExpiry(t *testing.T) {
	e := newEnv(t) // at 09:00 on 30 Nov 2030
	w := e.signIn(e.admin)
	for name, test := range map[string]struct {
		form url.Values
		want string
	}{
		"never":       {url.Values{"expires_in": {"never"}}, ""},
		"in 7 days":   {url.Values{"expires_in": {"7d"}}, "2030-12-07T09:00:00.000Z"},
		"custom date": {url.Values{"expires_in": {"7d"}, "expires_at": {"2031-02-28"}}, "2031-03-01T00:00:00.000Z"},
		"custom date and never": {url.Values{"expires_in": {"never"}, "expires_at": {"2031-02-28"}},
			"2031-03-01T00:00:00.000Z"},
		"today": {url.Values{"expires_at": {"2030-11-30"}}, "2030-12-01T00:00:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			test.form.Set("name", name)
			test.form.Set("scope", "read")

			w.post(tokensPath+"/new", test.form).want(201)
			for _, token := range e.in(t).tokens() {
				if token.Name == name && token.ExpiresAt.String() != test.want {
					t.Errorf("expires at %s, want %s", token.ExpiresAt, test.want)
				}
			}
		})
	}
}

func TestTokenFormErrors(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	good := url.Values{"name": {"ci"}, "scope": {"read"}, "expires_in": {"90d"}, "expires_at": {""}}

	for name, test := range map[string]struct{ field, value, want string }{
		"no name":           {"name", "  ", ""},
		"no scope":          {"scope", "", "read, write, maintain or admin"},
		"host scope":        {"scope", "host", ""},
		"an unknown repo":   {"repos", "api, none", "repo acme/none not found"},
		"no lifetime":       {"expires_in", "", "a lifetime or never"},
		"negative lifetime": {"expires_in", "-5d", "a lifetime or never"},
		"lifetime too long": {"expires_in", "999999999999d", "a lifetime or never"},
		"not a date":        {"expires_at", "<b>soon</b>", "use e.g. 2031-03-02"},
		"date in the past":  {"expires_at", "2030-11-29", ""},
		"date after 9999":   {"expires_at", "9999-12-31", "too far ahead"},
	} {
		t.Run(name, func(t *testing.T) {
			form := url.Values{}
			for field, values := range good {
				form[field] = values
			}
			form.Set(test.field, test.value)

			w := e.in(t).browserOf(w)
			p := w.post(tokensPath+"/new", form)
			if p.status < 400 || p.status > 422 {
				t.Fatalf("%d: %s", p.status, p.text())
			}
			p.hasError(test.field, test.want).has("Nothing was saved").hasNot("ldg_")
			if test.field != "name" && p.value("name") != "ci" {
				t.Error("the form lost the name")
			}
			checkHTML(t, "an admin", p)
		})
	}

	if n := len(e.tokens()); n != 3 {
		t.Errorf("%d tokens, want 3", n)
	}
}

// browserOf returns a copy of the browser for the env's test.
func (e *env) browserOf(w *browser) *browser {
	sub := *w
	sub.t = e.t
	return &sub
}

// The list shows the state of each token.
func TestTokenList(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	brief, err := e.host.CreateToken(t.Context(), "acme",
		ledger.NewToken{Name: "<i>brief</i>", Scope: ledger.Read, ExpiresAt: e.clock.time().Add(time.Hour)})
	must.OK(t, err)
	must.OK(t, e.host.RevokeToken(t.Context(), "acme", e.token("acme", ledger.Write).ID))
	w.get(tokensPath).want(200).has("<i>brief</i>", "never used", "expires 30 Nov 2030 10:00 UTC", "never expires",
		"revoked 30 Nov 2030 09:00 UTC", "admin of acme admin you")
	e.signIn(brief.Secret).get("/orgs/acme").want(200)
	e.clock.advance(2 * time.Hour)
	w.get(tokensPath).want(200).has("last used 30 Nov 2030 09:00 UTC", "expired 30 Nov 2030 10:00 UTC")

	if len(w.get(tokensPath).elements("i")) > 0 {
		t.Error("a name became an element")
	}

	for range 60 {
		e.token("acme", ledger.Read)
	}
	p := w.get(tokensPath).want(200)
	next := p.elements("a", "rel", "next")
	if len(next) != 1 {
		t.Fatal("no link to the next page")
	}
	w.get(attribute(next[0], "href")).want(200)
}

// Revoking a token ends its sessions, even the one that revokes it.
func TestRevokeTokens(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.admin)
	victim := e.token("acme", ledger.Admin)
	other := e.signIn(victim.Secret)
	other.get(tokensPath).want(200)
	if len(w.get(tokensPath).elements("form", "action", tokensPath+"/"+victim.ID+"/revoke")) != 1 {
		t.Error("no form to revoke the token")
	}
	w.post(tokensPath+"/"+victim.ID+"/revoke", nil).redirectsTo(tokensPath)
	w.get(tokensPath).want(200).has("revoked 30 Nov 2030 09:00 UTC")
	if len(w.get(tokensPath).elements("form", "action", tokensPath+"/"+victim.ID+"/revoke")) != 0 {
		t.Error("a revoked token has a form to revoke it")
	}
	w.post(tokensPath+"/tok_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/revoke", nil).want(404)

	ended := other.get(tokensPath).redirectsTo("/login?ended=1&next=%2Forgs%2Facme%2Fsettings%2Ftokens")
	for _, cookie := range ended.header.Values("Set-Cookie") {
		if !strings.Contains(cookie, "Max-Age=0") {
			t.Errorf("the cookie is not deleted: %s", cookie)
		}
	}
	other.post(tokensPath+"/new", url.Values{"name": {"late"}, "scope": {"admin"}, "expires_in": {"never"}}).redirectsTo(
		"/login?next=%2Forgs%2Facme%2Fsettings%2Ftokens%2Fnew")

	var own string
	for _, token := range e.tokens() {
		if token.Name == "admin of acme" && token.RevokedAt == 0 {
			own = token.ID
		}
	}
	w.post(tokensPath+"/"+own+"/revoke", nil).redirectsTo(tokensPath)
	w.get(tokensPath).redirectsTo("/login?ended=1&next=%2Forgs%2Facme%2Fsettings%2Ftokens")
	w.get("/login?ended=1").want(200).has("Your session has ended")
}

// Without scope admin, no page links to tokens and webhooks.
func TestSettingsByScope(t *testing.T) {
	e := newEnv(t)
	for _, secret := range []string{e.reader, e.writer} {
		w := e.signIn(secret)
		w.get("/orgs/acme/settings").redirectsTo(identitiesPath)
		for _, path := range []string{"/orgs/acme", "/orgs/acme/repos/api", identitiesPath} {
			p := w.get(path).want(200)
			for _, a := range p.elements("a") {
				if href := attribute(a, "href"); strings.Contains(href, "/tokens") || strings.Contains(href, "/webhooks") ||
					strings.HasSuffix(href, "/new") || strings.HasSuffix(href, "/edit") {
					t.Errorf("%s links to %s", p.what, href)
				}
			}
		}
		w.get(tokensPath).want(403).has("scope admin required")
		w.post(tokensPath+"/new", url.Values{"name": {"x"}, "scope": {"admin"}, "expires_in": {"never"}}).want(403)
	}
	if n := len(e.tokens()); n != 3 {
		t.Errorf("%d tokens, want 3", n)
	}
}

// The command to test a token has the server's address as the browser sees it. No
// address can break out of the quotes.
func TestTokenCurlCommand(t *testing.T) {
	e := newEnv(t)
	for _, test := range []struct{ origin, host, want string }{
		{"https://ledger.example.com", "127.0.0.1:8080", "'https://ledger.example.com/v1/"},
		{"https://ledger.example.com:8443", "", "'https://ledger.example.com:8443/v1/"},
		{"http://[::1]:8080", "", "'http://[::1]:8080/v1/"},
		{"", "ledger.internal:8080", "'http://ledger.internal:8080/v1/"},
		{"", "x'$(id)'", "'http://localhost/v1/"},
		{"https://x'$(id)", "y'$(id)", "'http://localhost/v1/"},
	} {
		w := e.signIn(e.admin)
		req, err := http.NewRequestWithContext(t.Context(), "POST", e.url+tokensPath+"/new",
			strings.NewReader("name=x&scope=read&expires_in=7d"))
		must.OK(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		for _, cookie := range w.client.Jar.Cookies(parse(t, e.url)) {
			cookie.Name = "__Host-" + cookie.Name // accepted over HTTP and HTTPS
			req.AddCookie(cookie)
		}

		p := e.serve(req, test.host).want(201)
		if !strings.Contains(p.text(), test.want) || strings.Contains(p.text(), "$(id)") {
			t.Errorf("origin %q, host %q: %s, want %s", test.origin, test.host, p.text(), test.want)
		}
	}
}

// serve serves a request with the Host header.
func (e *env) serve(r *http.Request, host string) page {
	e.t.Helper()
	if host != "" {
		r.Host = host
	}
	w := httptest.NewRecorder()
	e.site.Handler().ServeHTTP(w, r)
	return page{e.t, r.Method + " " + r.URL.Path, w.Code, w.Header(), w.Body.String()}
}
