package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A webPage is one page of the web interface, and how people get there.
type webPage struct {
	name  string // also of its picture
	route string // its pattern in server/web; empty for one more of the same
	path  string
	// then is what a visitor does there, for pages that are the answer to a form.
	then func(*visitor)
	// nobody is who looks: none is signed in.
	nobody bool
	// link is of another server, whose ledger is empty.
	link bool
}

// pages returns all pages, with the stage's data on them.
func (s *stage) pages() []webPage {
	const org, repo = "/orgs/{org}", "/orgs/{org}/repos/{repo}"
	const hooks = repo + "/webhooks"
	api := "/orgs/acme/repos/api"
	hook := api + "/webhooks/" + s.webhook
	answer := func(fields []string, button string) func(*visitor) {
		return func(v *visitor) {
			for i := 0; i < len(fields); i += 2 {
				v.fill(fields[i], fields[i+1])
			}
			v.press(button)
		}
	}
	contract := func(button, old, text string) func(*visitor) {
		return func(v *visitor) {
			v.fill("Policy (JSON)", strings.Replace(v.value("Policy (JSON)"), old, text, 1))
			v.press(button)
		}
	}
	return []webPage{
		{name: "setup", route: "/setup", link: true, nobody: true},
		{name: "setup-done", link: true, nobody: true, then: answer([]string{"Org name", "acme"}, "Create org")},
		{name: "login", route: "/login", path: "/login", nobody: true},
		{name: "login-refused", path: "/login", nobody: true, then: answer([]string{"API token", "ldg_mistyped"}, "Sign in")},
		{name: "org", route: org, path: "/orgs/acme"},
		{name: "activity", route: org + "/activity", path: "/orgs/acme/activity"},
		{name: "activity-open", path: "/orgs/acme/activity?type=radar&type=policy", then: func(v *visitor) {
			v.click("summary", "")
		}},
		{name: "activity-none", path: "/orgs/acme/activity?repo=handbook"},
		{name: "repo", route: repo, path: api},
		{name: "repo-list", path: api + "?view=list"},
		{name: "repo-none", path: "/orgs/acme/repos/handbook"},
		{name: "commit", route: repo + "/commits/{sha}", path: api + "/commits/" + commitOf(s.shown)},
		{name: "commit-deployed", path: api + "/commits/" + commitOf("price-cache")},
		{name: "commit-draft", path: api + "/commits/" + commitOf("login-limit")},
		{name: "attestation", route: repo + "/attestations/{id}", path: api + "/attestations/" + s.attestation},
		{name: "policy", route: repo + "/policy", path: api + "/policy"},
		{name: "policy-versions", route: repo + "/policy/versions", path: api + "/policy/versions"},
		{name: "policy-version", route: repo + "/policy/versions/{version}", path: api + "/policy/versions/3"},
		{name: "policy-edit", route: repo + "/policy/edit", path: api + "/policy/edit"},
		{name: "policy-mistake", path: api + "/policy/edit", then: contract("Save", `"threshold": 1`, `"threshold": 0`)},
		{name: "policy-preview", path: api + "/policy/edit", then: contract("Preview", `"threshold": 2`, `"threshold": 1`)},
		{name: "radar", route: repo + "/radar", path: api + "/radar"},
		{name: "radar-none", path: "/orgs/acme/repos/handbook/radar"},
		{name: "tokens", route: org + "/settings/tokens", path: "/orgs/acme/settings/tokens"},
		{name: "token-revoke", path: "/orgs/acme/settings/tokens", then: func(v *visitor) { v.unfold("Revoke") }},
		{name: "token-new", route: org + "/settings/tokens/new", path: "/orgs/acme/settings/tokens/new"},
		{name: "token-mistake", path: "/orgs/acme/settings/tokens/new",
			then: answer([]string{"Name", strings.Repeat("long", 60)}, "Create token")},
		{name: "token-made", path: "/orgs/acme/settings/tokens/new",
			then: answer([]string{"Name", "release bot"}, "Create token")},
		{name: "identities", route: org + "/settings/identities", path: "/orgs/acme/settings/identities"},
		{name: "identity-new", route: org + "/settings/identities/new", path: "/orgs/acme/settings/identities/new"},
		{name: "webhooks", route: hooks, path: api + "/webhooks"},
		{name: "webhooks-none", path: "/orgs/acme/repos/web/webhooks"},
		{name: "webhook-new", route: hooks + "/new", path: api + "/webhooks/new"},
		{name: "webhook-made", path: "/orgs/acme/repos/handbook/webhooks/new",
			then: answer([]string{"URL", "http://127.0.0.1:9000/ledger"}, "Create webhook")},
		{name: "webhook", route: hooks + "/{id}", path: hook},
		{name: "webhook-edit", route: hooks + "/{id}/edit", path: hook + "/edit"},
		{name: "webhook-rotate", route: hooks + "/{id}/rotate", path: hook + "/rotate"},
		{name: "webhook-rotated", path: hook + "/rotate", then: answer([]string{"Overlap", "24h"}, "Create new secret")},
		{name: "webhook-replay", route: hooks + "/{id}/replay", path: hook + "/replay"},
		{name: "delivery", route: hooks + "/{id}/deliveries/{delivery}", path: hook + "/deliveries/" + s.delivery},
		{name: "not-found", path: api + "/commits/" + strings.Repeat("ab", 20)},
	}
}

// notPages are what one can get and is no page, and why.
var notPages = map[string]string{
	"/{$}":                 "leads to the org, or to the sign-in",
	"/static/{file}":       "style, script and icon, which every page loads",
	"/orgs/{org}/events":   "the stream, by which pages change",
	"/orgs/{org}/settings": "leads to the first of the settings",
	"/orgs/{org}/repos/{repo}/attestations/{id}/envelope": "a download",
}

// The pages that the other tests look at are all there are.
func TestWebPagesAreAll(t *testing.T) {
	want := map[string]bool{}
	for _, p := range (&stage{}).pages() {
		if p.route != "" {
			want[p.route] = true
		}
	}
	for _, route := range routesOfPages(t) {
		if !want[route] && notPages[route] == "" {
			t.Errorf("nobody looks at %s: add it to pages, or to notPages", route)
		}
		delete(want, route)
	}
	for route := range want {
		t.Errorf("there is no route %s any more", route)
	}
}

// routesOfPages reads what can be got out of the table in server/web.
func routesOfPages(t *testing.T) []string {
	t.Helper()
	values := map[string]string{} // of constants
	var valueOf func(ast.Expr) string
	valueOf = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(e.Value)
			check(t, err)
			return text
		case *ast.Ident:
			return values[e.Name]
		case *ast.BinaryExpr:
			return valueOf(e.X) + valueOf(e.Y)
		}
		return ""
	}
	var routes []string
	for _, name := range []string{"visit.go", "routes.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../server/web/"+name, nil, 0)
		check(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if len(n.Values) == len(n.Names) && strings.HasSuffix(n.Names[0].Name, "Pattern") {
					values[n.Names[0].Name] = valueOf(n.Values[0])
				}
			case *ast.CompositeLit:
				if len(n.Elts) == 4 {
					if method, ok := n.Elts[0].(*ast.Ident); ok && method.Name == "get" {
						routes = append(routes, valueOf(n.Elts[1]))
					}
				}
			}
			return true
		})
	}
	if len(routes) < 10 {
		t.Fatalf("server/web/routes.go is not as it was: only %q", routes)
	}
	return routes
}

// A tour goes through all pages, with more than one visitor at once.
type tour struct {
	*stage
	browser *browser
	setup   string // the link of the server with an empty ledger
	setupAt string
}

// newTour lets people look at a stage.
func newTour(t *testing.T, s *stage) *tour {
	t.Helper()
	empty := newEmptyLedger(t)
	empty.start()
	link := regexp.MustCompile(`/setup\?key=\S+`)
	waitFor(t, "the link", 10*time.Second, func() bool { return link.MatchString(empty.log.String()) })
	return &tour{s, newBrowser(t), link.FindString(empty.log.String()), empty.url}
}

// only narrows the pages to those whose names begin so.
const only = "LEDGERD_E2E_PAGES"

// each calls look with a visitor of every page, in two tabs at once.
func (r *tour) each(t *testing.T, look func(*visitor, webPage)) {
	t.Helper()
	pages := make(chan webPage, 100)
	var links []webPage
	for _, p := range r.pages() {
		switch {
		case !strings.HasPrefix(p.name, os.Getenv(only)):
		case p.link:
			links = append(links, p)
		default:
			pages <- p
		}
	}
	close(pages)
	newcomer := r.browser.visitor(t, r.setupAt)
	for _, p := range links { // one after the other: the link works once
		p.path = r.setup
		newcomer.visit(t, p, look)
	}
	var tabs sync.WaitGroup
	for range 2 {
		nobody, admin := r.browser.visitor(t, r.url), r.browser.visitor(t, r.url)
		admin.signIn(r.admin)
		tabs.Go(func() {
			for p := range pages {
				if p.nobody {
					nobody.visit(t, p, look)
				} else {
					admin.visit(t, p, look)
				}
			}
		})
	}
	tabs.Wait()
}

// visit goes to a page and looks at it.
func (v *visitor) visit(t *testing.T, p webPage, look func(*visitor, webPage)) {
	t.Run(p.name, func(t *testing.T) {
		v.t = t
		v.window(wide, "light")
		v.open(p.path)
		if p.then != nil {
			p.then(v)
		}
		look(v, p)
		v.checkConsole(t)
	})
}

// The windows that pages are looked at in.
const (
	wide   = 1280
	narrow = 390
)
