package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// A sign-in link signs in once. Looking at it does not use it up, and neither the page nor the
// log has the token.
func TestSignInLink(t *testing.T) {
	e := newEnv(t)
	token := e.token("acme", ledger.Read)
	path, used := e.site.SignInPath(token, 15*time.Minute)
	if strings.Contains(path, token.Secret) {
		t.Fatalf("the link contains the token: %s", path)
	}
	for range 2 {
		e.browser().get(path).want(200).has("Sign in", "acme", "works once").hasNot(token.Secret, "API token")
	}

	w := e.browser()
	key := attribute(w.get(path).elements("input", "name", "link")[0], "value")
	p := w.post("/login", url.Values{"link": {key}, "next": {"/orgs/acme"}}).redirectsTo("/orgs/acme")
	if cookie := p.header.Get("Set-Cookie"); !strings.Contains(cookie, "SameSite=Lax") || strings.Contains(cookie, key) {
		t.Errorf("the cookie is %q", cookie)
	}
	w.get("/orgs/acme").want(200).has("read of acme")
	<-used

	e.browser().get(path).want(403).has("used or expired")
	if p := e.browser().post("/login", url.Values{"link": {key}}).want(403); p.header.Get("Set-Cookie") != "" {
		t.Error("a used link sets a cookie")
	}
	if log := e.log.String(); strings.Contains(log, key) || strings.Contains(log, token.Secret) {
		t.Errorf("a secret is in the log: %s", log)
	}
}

func TestSignInLinkRefused(t *testing.T) {
	e := newEnv(t)
	token := e.token("acme", ledger.Read)
	path, used := e.site.SignInPath(token, time.Minute)
	key := strings.TrimPrefix(path, "/login?link=")

	other := e.browser()
	other.header = map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
	other.post("/login", url.Values{"link": {key}}).want(403).has("another site")
	proxied := e.browser()
	proxied.header = map[string]string{"X-Forwarded-For": "192.0.2.7"}
	proxied.get(path).want(403).has("machine of the server")
	proxied.post("/login", url.Values{"link": {key}}).want(403)
	e.browser().get(path + "A").want(403)
	e.browser().get(path).want(200)

	e.clock.advance(time.Minute)
	e.browser().get(path).want(403).has("used or expired")
	e.browser().post("/login", url.Values{"link": {key}}).want(403)
	select {
	case <-used:
		t.Error("the link was used")
	default:
	}

	path, _ = e.site.SignInPath(token, time.Minute)
	must.OK(t, e.host.RevokeToken(t.Context(), "acme", token.ID))
	key = strings.TrimPrefix(path, "/login?link=")
	e.browser().post("/login", url.Values{"link": {key}}).want(401).has("revoked")
}
