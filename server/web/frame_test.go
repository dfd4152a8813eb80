package web_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web"
)

func routes() []web.Route { return web.Routes() }

// example fills in the names of a pattern: those of the org and the repo with
// what there is, the others with what there is not.
func example(pattern string) string {
	return strings.NewReplacer("{$}", "", "{org}", "acme", "{repo}", "api", "{sha}", strings.Repeat("c0ffee00", 5), "{file}", "none.css",
		"{delivery}", "dlv_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", "{id}", "whk_01KAJ8Q0M6R4YB0J3X5T9ZC2DE", "{version}", "1").Replace(pattern)
}

// Whatever is answered, and to whom: nothing but what this server gives is
// loaded, nothing is framed, nothing is kept.
func TestHeadersOfEveryRoute(t *testing.T) {
	b := newBench(t)
	paths := []string{"/nowhere", "/static/none.css", "/orgs/acme%2Fx", "/orgs/acme/repos/%2e%2e"}
	for _, rt := range routes() {
		paths = append(paths, example(rt.Pattern))
	}
	for who, w := range map[string]*browser{"nobody": b.browser(), "a reader": b.signIn(b.reader), "an admin": b.signIn(b.admin)} {
		for _, path := range paths {
			for _, method := range []string{"HEAD", "POST", "PUT"} {
				if path == "/logout" && method == "POST" {
					continue
				}
				p := w.send(method, path, url.Values{})
				for name, want := range map[string]string{
					"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
					"Referrer-Policy":         "same-origin",
					"X-Content-Type-Options":  "nosniff",
				} {
					if got := p.header.Get(name); got != want {
						t.Errorf("%s as %s: %s: %q", p.what, who, name, got)
					}
				}
				if got := p.header.Get("Cache-Control"); got != "no-store" && p.header.Get("Content-Type") != "text/event-stream" {
					t.Errorf("%s as %s: Cache-Control: %q", p.what, who, got)
				}
				if p.status >= 500 {
					t.Errorf("%s as %s: %d", p.what, who, p.status)
				}
			}
		}
	}
}

// A form that another site sends does nothing, whatever page it is sent to.
func TestForgedForms(t *testing.T) {
	b := newBench(t)
	for name, header := range map[string]map[string]string{
		"another site":             {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a neighbour":              {"Sec-Fetch-Site": "same-site", "Origin": "http://evil.localhost"},
		"an old browser":           {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
		"a page without an origin": {"Sec-Fetch-Site": "", "Origin": "null"},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.in(t).signIn(b.admin)
			w.header = header
			for _, rt := range routes() {
				if rt.Method == "POST" {
					w.post(example(rt.Pattern), url.Values{"token": {b.admin}}).want(403).has("from another site")
				}
			}
			w.header = nil
			w.get("/orgs/acme").want(200)
		})
	}
}

// What a visitor's token does not allow is neither shown nor done.
func TestReadersSeeNoForms(t *testing.T) {
	b := newBench(t)
	for scope, secret := range map[ledger.Scope]string{ledger.Read: b.reader, ledger.Write: b.writer} {
		w := b.signIn(secret)
		for _, rt := range routes() {
			if rt.Scope == 0 || strings.HasSuffix(rt.Pattern, "/events") {
				continue
			}
			p := w.send(rt.Method, example(rt.Pattern), url.Values{})
			if rt.Scope > scope {
				p.want(403).has("needs the scope " + rt.Scope.String())
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
}

// Of every page: one h1, one main, a language, a title; each input has a label;
// no style or script stands in it.
func TestPagesAreWellMade(t *testing.T) {
	b := newBench(t)
	ci := b.signer("cn=ci,ou=build,o=acme")
	b.push(commitID(1), ledger.Registration{Branch: "main", Message: "First"})
	b.attest(ci, commitID(1), "test:go", ledger.Fail)
	for who, w := range map[string]*browser{"nobody": b.browser(), "a reader": b.signIn(b.reader), "an admin": b.signIn(b.admin)} {
		for _, rt := range routes() {
			if rt.Method != "GET" || strings.HasSuffix(rt.Pattern, "/events") {
				continue
			}
			p := w.get(example(rt.Pattern))
			if p.status == 303 || !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
				continue
			}
			wellMade(t, who, p)
		}
	}
}

var handler = regexp.MustCompile(`^on[a-z]+$`)

func wellMade(t *testing.T, who string, p page) {
	t.Helper()
	wrong := func(format string) { t.Helper(); t.Errorf("%s as %s: %s", p.what, who, format) }
	for _, name := range []string{"h1", "main", "header", "footer", "title"} {
		if n := len(p.elements(name)); n != 1 {
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
			if kind != "hidden" && kind != "submit" && !labelled[attribute(n, "id")] && n.Parent.Data != "label" && attribute(n, "aria-label") == "" {
				wrong("the field " + attribute(n, "name") + " has no label")
			}
		}
	}
}

func TestStaticFiles(t *testing.T) {
	b := newBench(t)
	w := b.browser()
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

func TestNoSuchPage(t *testing.T) {
	b := newBench(t)
	w := b.signIn(b.reader)
	w.get("/nowhere/<b>").want(404).has("There is nothing here", "/nowhere/<b>")
	w.get("/orgs/acme%2f..").want(404)
	p := w.send("DELETE", "/orgs/acme", nil).want(405)
	if got := p.header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow: %q", got)
	}
}
