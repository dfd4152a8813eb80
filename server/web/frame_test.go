package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web"
)

func routes() []web.Route { return web.Routes() }

// examples makes something of each kind that the patterns of routes name, and
// returns what fills their names in.
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
	check(e.t, err)
	e.dispatch()
	eventually(e.t, "the ping", func() bool { return e.deliveries(hook)[0].Attempts == 1 })
	_, style, _ := strings.Cut(attribute(e.browser().get("/login").elements("link", "rel", "stylesheet")[0], "href"),
		"/static/")

	e.signer("cn=brief,ou=build,o=acme")
	identities, err := client.Collect(e.host.Identities(e.t.Context(), "acme"), 0)
	check(e.t, err)
	return strings.NewReplacer("{$}", "", "{org}", "acme", "{repo}", "api", "{sha}", sha, "{version}", "1", "{file}",
		style,
		"attestations/{id}", "attestations/"+attestation,
		"webhooks/{id}/remove", "webhooks/"+e.webhook("https://ci.example.com").ID+"/remove", // none of the others
		"webhooks/{id}", "webhooks/"+hook, "{delivery}", ping.ID,
		"tokens/{id}", "tokens/"+e.token("acme", ledger.Read).ID, "identities/{id}", "identities/"+identities[1].ID,
	).Replace
}

// wantsOf returns the status that a route's page has for a token of that scope,
// 0 for nobody.
func wantStatus(rt web.Route, scope ledger.Scope) int {
	switch {
	case rt.Pattern == "/static/{file}", rt.Pattern == "/login" && scope == 0:
		return 200
	case rt.Pattern == "/setup":
		return 403 // to who has no key to it
	case rt.Scope == 0, scope == 0, strings.HasSuffix(rt.Pattern, "/settings"):
		return 303
	case scope < rt.Scope:
		return 403
	}
	return 200
}

// Whatever is answered, and to whom: nothing but what this server gives is
// loaded, nothing is framed, nothing is kept.
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
					t.Errorf("%s with the scope %d: %d", p.what, scope, p.status)
				}
			}
		}
		for _, path := range []string{"/nowhere", "/static/none.css", "/orgs/acme%2Fx", "/orgs/acme/repos/%2e%2e"} {
			w.send("HEAD", path, nil).want(404).checkHeaders(false)
		}
	}
}

// guarded reports headers that would let a browser do more than it should.
func (p page) checkHeaders(mayBeKept bool) page {
	p.t.Helper()
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Referrer-Policy":        "same-origin",
		"X-Content-Type-Options": "nosniff",
	}
	if !mayBeKept && p.header.Get("Content-Type") != "text/event-stream" {
		want["Cache-Control"] = "no-store"
	}
	for name, value := range want {
		if got := p.header.Get(name); got != value {
			p.t.Errorf("%s: %s: %q", p.what, name, got)
		}
	}
	return p
}

// A form that another site sends does nothing, whatever page it is sent to.
func TestCrossSiteForms(t *testing.T) {
	e := newEnv(t)
	example := e.examples()
	before := e.state()
	for name, header := range map[string]map[string]string{
		"another site":             {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a neighbour":              {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.localhost"},
		"an old browser":           {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
		"a page without an origin": {"Sec-Fetch-Site": "", "Origin": "null"},
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

// state tells of what the forms of the pages change.
func (e *env) state() string {
	e.t.Helper()
	repo, err := e.host.Repo(e.t.Context(), "acme", "api")
	check(e.t, err)
	tokens, err := client.Collect(e.host.Tokens(e.t.Context(), "acme"), 0)
	check(e.t, err)
	identities, err := client.Collect(e.host.Identities(e.t.Context(), "acme"), 0)
	check(e.t, err)
	var text strings.Builder
	fmt.Fprintf(&text, "policy version %d, identities %v, webhooks %+v\n", repo.PolicyVersion, identities, e.webhooks())
	for _, token := range tokens {
		fmt.Fprintln(&text, token.ID, token.RevokedAt) // and not when it was last used
	}
	return text.String()
}

// What a visitor's token does not allow is neither shown nor done.
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
			p := w.send(rt.Method, example(rt.Pattern), url.Values{}).want(wantStatus(rt, scope))
			if rt.Scope > scope {
				p.has("scope " + rt.Scope.String() + " required")
			} else if rt.Method == "POST" {
				t.Errorf("%s: a token with the scope %s may send it", p.what, scope)
			}
			for _, form := range p.elements("form", "method", "post") {
				if attribute(form, "action") != "/logout" {
					t.Errorf("%s: shows a form to a token with the scope %s", p.what, scope)
				}
			}
		}
	}
	if after := e.state(); after != before {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}

// Of every page: one h1, one main, a language, a title; each input has a label;
// no style or script stands in it.
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
				checkHTML(t, fmt.Sprint("the scope ", scope), p)
			}
		}
	}
}

var handler = regexp.MustCompile(`^on[a-z]+$`)

func checkHTML(t *testing.T, who string, p page) {
	t.Helper()
	wrong := func(format string) { t.Helper(); t.Errorf("%s as %s: %s", p.what, who, format) }
	for _, name := range []string{"h1", "main", "header", "footer", "title"} {
		found := p.elements(name)
		// pictures have titles too
		if len(slices.DeleteFunc(found, func(n *html.Node) bool { return n.Namespace != "" })) != 1 {
			wrong("it has not just one " + name)
		}
	}
	if len(p.elements("html", "lang", "en")) != 1 {
		wrong("it names no language")
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
			wrong("a " + n.Data + " is named and has no role")
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style", handler.MatchString(a.Key):
				wrong("an element has the attribute " + a.Key)
			case a.Key == "id" && ids[a.Val]:
				wrong("the id " + a.Val + " is there twice")
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
		switch kind := attribute(n, "type"); n.Data {
		case "style":
			wrong("it has a style element")
		case "script":
			if attribute(n, "src") == "" {
				wrong("it has a script in itself")
			}
		case "input", "select", "textarea":
			if kind != "hidden" && kind != "submit" && !labelled[attribute(n, "id")] && n.Parent.Data != "label" &&
				attribute(n, "aria-label") == "" {
				wrong("the field " + attribute(n, "name") + " has no label")
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
	w.get("/static/app.css").want(404)
	w.get("/static/..%2froutes.go").want(404)
}

// Style and script come to who is signed in where the database does not answer.
func TestStaticFilesWithoutDatabase(t *testing.T) {
	e := newEnv(t)
	w := e.signIn(e.reader)
	style := attribute(w.get("/orgs/acme").want(200).elements("link", "rel", "stylesheet")[0], "href")
	check(t, e.db.Close())
	w.get(style).want(200)
	if p := w.get("/orgs/acme"); p.status < 500 {
		t.Errorf("the page: %d", p.status)
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

// Who is signed in stays so on the pages of problems, and nothing leads to a
// repo that is not there.
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
