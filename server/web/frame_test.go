package web_test

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web"
)

func routes() []web.Route { return web.Routes() }

// examples creates an example of each resource in the routes' patterns. It
// returns a function that turns a pattern into the path of an example.
func (e *env) examples() func(pattern string) string {
	e.t.Helper()
	const sha = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
	e.branch(1, "one", "ada", lineEdit("cmd/root.go", 100))
	e.push(sha, ledger.Registration{Branch: "two", Message: "Second\n\nat length", Author: ledger.Author{Name: "Grace"},
		Changes: []radar.Change{lineEdit("cmd/root.go", 101)}})
	ci := e.signer("cn=ci,ou=build,o=acme")
	attestation := e.attest(ci, sha, "test:go", ledger.Fail).ID
	hook := e.webhook(newReceiver(e.t).url).ID
	ping, err := e.host.PingWebhook(e.t.Context(), "acme", "api", hook)
	must.OK(e.t, err)
	e.dispatch()
	must.Wait(e.t, "the ping", func() bool { return e.deliveries(hook)[0].Attempts == 1 })
	_, style, _ := strings.Cut(attribute(e.browser().get("/login").elements("link", "rel", "stylesheet")[0], "href"),
		"/static/")

	e.signer("cn=brief,ou=build,o=acme")
	e.signLog(e.beginLog())
	ann := e.addMember("ann", member.Admin)
	rule, err := e.host.CreateMemberRule(e.t.Context(), "acme", member.NewRule{Issuer: provider, Claim: "groups",
		Value: "dev", Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
	must.OK(e.t, err)
	_, signIn := e.signInMember("ann")
	key := e.passkey(signIn)
	identities := must.Get(client.Collect(e.host.Identities(e.t.Context(), "acme"), 0))(e.t)
	return strings.NewReplacer("{$}", "", "{org}", "acme", "{repo}", "api",
		"{digest}", "sha256:"+strings.Repeat("2b", 32), "{sha}", sha, "{version}", "1", "{file}",
		style,
		"attestations/{id}", "attestations/"+attestation,
		"webhooks/{id}/remove", "webhooks/"+e.webhook("https://ci.example.com").ID+"/remove", // one of its own
		"webhooks/{id}", "webhooks/"+hook, "{delivery}", ping.ID,
		"tokens/{id}", "tokens/"+e.token("acme", ledger.Read).ID, "identities/{id}", "identities/"+identities[1].ID,
		"members/{id}", "members/"+ann.ID, "member-rules/{id}", "member-rules/"+rule.ID, "sign-ins/{id}",
		"sign-ins/"+signIn.ID, "passkeys/{id}", "passkeys/"+key.ID,
	).Replace
}

// wantStatus returns the expected status of a route for a token with the scope, or
// for a visitor without a session if scope is 0.
func wantStatus(rt web.Route, scope ledger.Scope) int {
	switch {
	case rt.Pattern == "/static/{file}", rt.Pattern == "/login" && scope == 0:
		return 200
	case strings.HasSuffix(rt.Pattern, "/{provider}"):
		return 404 // this server has no providers
	case rt.Pattern == "/setup":
		return 403 // without its key
	case rt.Scope == 0, scope == 0, strings.HasSuffix(rt.Pattern, "/settings"):
		return 303
	case scope < rt.Scope:
		return 403
	case strings.HasSuffix(rt.Pattern, "/assertion"):
		return 404 // no passkey has confirmed the attestation
	}
	return 200
}

// Every response has the security headers: pages load only from this server, are
// not framed and not cached.
func TestSecurityHeaders(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	for scope, w := range map[ledger.Scope]*browser{0: e.browser(), ledger.Read: e.signIn(e.reader),
		ledger.Admin: e.signIn(e.admin)} {
		for _, rt := range routes() {
			if rt.Method == "GET" {
				w.send("HEAD", example(rt.Pattern), nil).want(wantStatus(rt, scope)).checkHeaders(rt.Pattern == "/static/{file}")
				w.send("PUT", example(rt.Pattern), nil).want(405).checkHeaders(false)
			} else if rt.Pattern != "/logout" {
				if p := w.send("POST", example(rt.Pattern), url.Values{}).checkHeaders(false); p.status == 404 || p.status >= 500 {
					t.Errorf("%s with scope %d: %d", p.what, scope, p.status)
				}
			}
		}
		for _, path := range []string{"/nowhere", "/static/none.css", "/orgs/acme%2Fx", "/orgs/acme/repos/%2e%2e"} {
			w.send("HEAD", path, nil).want(404).checkHeaders(false)
		}
	}
}

// checkHeaders checks the security headers. Responses must not be cached unless
// cacheable is set.
func (p page) checkHeaders(cacheable bool) page {
	p.t.Helper()
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Referrer-Policy":        "same-origin",
		"X-Content-Type-Options": "nosniff",
	}
	if !cacheable && p.header.Get("Content-Type") != "text/event-stream" {
		want["Cache-Control"] = "no-store"
	}
	for name, value := range want {
		if got := p.header.Get(name); got != value {
			p.t.Errorf("%s: header %s: %q, want %q", p.what, name, got, value)
		}
	}
	return p
}

// Forms from other sites are refused, on every route.
func TestCrossSiteForms(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	before := e.state()

	for name, header := range map[string]map[string]string{
		"other site":              {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"same site, other origin": {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.localhost"},
		"old browser":             {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
		"null origin":             {"Sec-Fetch-Site": "", "Origin": "null"},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.in(t).signIn(e.admin)
			w.header = header
			for _, rt := range routes() {
				if rt.Method == "POST" {
					w.post(example(rt.Pattern), url.Values{"token": {e.admin}}).want(403).has("from another site")
				}
			}
			w.header = nil
			w.get("/orgs/acme").want(200)
		})
	}

	if after := e.state(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// state describes everything that forms can change.
func (e *env) state() string {
	e.t.Helper()
	repo, err := e.host.Repo(e.t.Context(), "acme", "api")
	must.OK(e.t, err)
	tokens := must.Get(client.Collect(e.host.Tokens(e.t.Context(), "acme"), 0))(e.t)
	identities := must.Get(client.Collect(e.host.Identities(e.t.Context(), "acme"), 0))(e.t)
	var text strings.Builder
	fmt.Fprintf(&text, "policy version %d, identities %v, webhooks %+v\n", repo.PolicyVersion, identities, e.webhooks())
	for _, token := range tokens {
		fmt.Fprintln(&text, token.ID, token.RevokedAt) // without the time of last use
	}
	return text.String()
}

// Forms that a token's scope does not allow are neither shown nor processed.
func TestReadersSeeNoForms(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	before := e.state()

	for scope, secret := range map[ledger.Scope]string{ledger.Read: e.reader, ledger.Write: e.writer} {
		w := e.signIn(secret)
		for _, rt := range routes() {
			if rt.Scope == 0 || strings.HasSuffix(rt.Pattern, "/events") {
				continue
			}
			switch name := path.Base(rt.Pattern); {
			case slices.Contains([]string{"end", "review", "review-draft"}, name),
				rt.Method == "POST" && strings.Contains(rt.Pattern, "/passkeys/"): // for members who are signed in with a provider
				w.post(example(rt.Pattern), nil).want(403)
				continue
			}
			p := w.send(rt.Method, example(rt.Pattern), url.Values{}).want(wantStatus(rt, scope))
			if rt.Scope > scope {
				p.has("scope " + rt.Scope.String() + " required")
			} else if rt.Method == "POST" {
				t.Errorf("%s: allowed with scope %s", p.what, scope)
			}
			for _, form := range p.elements("form", "method", "post") {
				if attribute(form, "action") != "/logout" {
					t.Errorf("%s: shows a form with scope %s", p.what, scope)
				}
			}
		}
	}

	if after := e.state(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// Every page has one h1, one main, a language and a title. Every input has a
// label. There are no inline styles or scripts.
func TestHTML(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	for scope, w := range map[ledger.Scope]*browser{0: e.browser(), ledger.Read: e.signIn(e.reader),
		ledger.Admin: e.signIn(e.admin)} {
		for _, rt := range routes() {
			if rt.Method != "GET" || strings.HasSuffix(rt.Pattern, "/events") {
				continue
			}
			p := w.get(example(rt.Pattern)).want(wantStatus(rt, scope))
			if p.status != 303 && strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
				checkHTML(t, fmt.Sprint("scope ", scope), p)
			}
		}
	}
}

var handler = regexp.MustCompile(`^on[a-z]+$`)

// checkHTML checks the rules of TestHTML for a page.
func checkHTML(t *testing.T, who string, p page) {
	t.Helper()
	fail := func(message string) { t.Helper(); t.Errorf("%s as %s: %s", p.what, who, message) }

	for _, name := range []string{"h1", "main", "header", "footer", "title"} {
		elements := p.elements(name)
		// SVG elements have titles too
		if len(slices.DeleteFunc(elements, func(n *html.Node) bool { return n.Namespace != "" })) != 1 {
			fail("not exactly one " + name)
		}
	}
	if len(p.elements("html", "lang", "en")) != 1 {
		fail("no lang attribute")
	}

	labelled, ids := map[string]bool{}, map[string]bool{}
	for _, label := range p.elements("label") {
		labelled[attribute(label, "for")] = true
	}
	for n := range p.tree().Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if plain := n.Data == "pre" || n.Data == "div" || n.Data == "span"; plain && attribute(n, "role") == "" &&
			attribute(n, "aria-label")+attribute(n, "aria-labelledby") != "" {
			fail("a " + n.Data + " has a name but no role")
		}

		for _, a := range n.Attr {
			switch {
			case a.Key == "style", handler.MatchString(a.Key):
				fail("inline attribute " + a.Key)
			case a.Key == "id" && ids[a.Val]:
				fail("duplicate id " + a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}

		switch kind := attribute(n, "type"); n.Data {
		case "style":
			fail("inline style")
		case "script":
			if attribute(n, "src") == "" {
				fail("inline script")
			}
		case "input", "select", "textarea":
			if kind != "hidden" && kind != "submit" && !labelled[attribute(n, "id")] && n.Parent.Data != "label" &&
				attribute(n, "aria-label") == "" {
				fail("no label for the field " + attribute(n, "name"))
			}
		}
	}
}

func TestStaticFiles(t *testing.T) {
	e := newEnv(t)
	w := e.browser()
	p := w.get("/login").want(200)
	for _, link := range append(p.elements("link"), p.elements("script")...) {
		path := attribute(link, "href") + attribute(link, "src")
		file := w.get(path).want(200)
		if got := file.header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control: %q", path, got)
		}
		if file.body == "" {
			t.Errorf("%s is empty", path)
		}
	}
	w.get("/static/app.css").want(404).has("reload the page")
	w.get("/static/..%2froutes.go").want(404)
}

// Style and script are served even if the database fails.
func TestStaticFilesWithoutDatabase(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	style := attribute(w.get("/orgs/acme").want(200).elements("link", "rel", "stylesheet")[0], "href")
	must.OK(t, e.db.Close())
	w.get(style).want(200)
	if p := w.get("/orgs/acme"); p.status < 500 {
		t.Errorf("%s: %d, want a 5xx", p.what, p.status)
	}
}

func TestNotFound(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	w.get("/nowhere/<b>").want(404).has("Page not found", "no page at /nowhere/<b>")
	w.get("/orgs/acme%2f..").want(404)
	for _, test := range []struct{ method, path, allow string }{
		{"DELETE", "/orgs/acme", "GET, HEAD"},
		{"FOO", "/orgs/acme", "GET, HEAD"},
		{"TRACE", "/login", "GET, HEAD, POST"},
		{"OPTIONS", policyPath + "/edit", "GET, HEAD, POST"},
		{"GET", "/logout", "POST"},
		{"GET", tokensPath + "/tok_1/revoke", "POST"},
	} {
		p := w.send(test.method, test.path, nil).want(405)
		if got := p.header.Get("Allow"); got != test.allow {
			t.Errorf("%s: Allow: %q, want %q", p.what, got, test.allow)
		}
	}
	w.send("FOO", "/nowhere", nil).want(404)
}

// Error pages have the header of the signed-in visitor, and no tabs for a repo
// that does not exist.
func TestErrorPageFrame(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	w.get("/nowhere").want(404).has("read of acme", "Activity")
	w.send("DELETE", "/orgs/acme", nil).want(405).has("read of acme", "Activity")
	w.get("/orgs/acme/repos/none").want(404).has("read of acme", "Activity").hasNot("Radar", "Commits")
	w.get("/orgs/acme/repos/none/radar").want(404).hasNot("Policy")
	w.get("/orgs/acme/repos/api/commits/"+commitID(7)).want(404).has("Radar", "Policy")
	e.browser().get("/nowhere").want(404).hasNot("Activity")
}
