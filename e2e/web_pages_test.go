package e2e_test

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/server/web"
)

// A webPage is a page of the web interface and the way to reach it.
type webPage struct {
	name  string // also the name of its screenshot
	route string // pattern in server/web; empty if another page has the same route
	path  string
	// then is called after the path was opened, such as to submit a form.
	then func(*visitor)
	// signedOut pages are visited without a session.
	signedOut bool
	// setup pages are opened with the setup link of a second server, whose
	// database is empty.
	setup bool
}

// pages returns all pages, with paths to the data of the stage.
func (s *stage) pages() []webPage {
	const org, repo = "/orgs/{org}", "/orgs/{org}/repos/{repo}"
	const hooks = repo + "/webhooks"
	api := "/orgs/acme/repos/api"
	hook := api + "/webhooks/" + s.webhook
	submit := func(fields []string, button string) func(*visitor) {
		return func(v *visitor) {
			for i := 0; i < len(fields); i += 2 {
				v.fill(fields[i], fields[i+1])
			}
			v.press(button)
		}
	}
	editPolicy := func(button, old, replacement string) func(*visitor) {
		return func(v *visitor) {
			v.fill("Policy (YAML)", strings.Replace(v.value("Policy (YAML)"), old, replacement, 1))
			v.press(button)
		}
	}
	return []webPage{
		{name: "setup", route: "/setup", setup: true, signedOut: true},
		{name: "setup-done", setup: true, signedOut: true, then: submit([]string{"Org name", "acme"}, "Create org")},

		{name: "login", route: "/login", path: "/login", signedOut: true},
		{name: "login-refused", path: "/login", signedOut: true,
			then: submit([]string{"API token", "ldg_mistyped"}, "Sign in")},

		{name: "org", route: org, path: "/orgs/acme"},
		{name: "activity", route: org + "/activity", path: "/orgs/acme/activity"},
		{name: "activity-open", path: "/orgs/acme/activity?type=radar&type=policy", then: func(v *visitor) {
			v.click("summary", "")
		}},
		{name: "activity-none", path: "/orgs/acme/activity?repo=handbook"},

		{name: "search", route: org + "/search", path: "/orgs/acme/search?q=price"},
		{name: "search-none", path: "/orgs/acme/search?q=nothing+like+it"},
		{name: "search-empty", path: "/orgs/acme/search"},
		{name: "search-invalid", path: "/orgs/acme/search?q=1+2+3+4+5+6+7+8+9+10+11"},
		{name: "log", route: org + "/log", path: "/orgs/acme/log"},
		{name: "log-open", path: "/orgs/acme/log", then: func(v *visitor) { v.unfold("Signed checkpoint") }},
		{name: "insights", route: org + "/insights", path: "/orgs/acme/insights"},
		{name: "insights-none", path: "/orgs/acme/insights?repo=handbook&days=30"},

		{name: "violations", route: org + "/violations", path: "/orgs/acme/violations"},
		{name: "attention", route: org + "/attention", path: "/orgs/acme/attention"},
		{name: "environments", route: org + "/environments", path: "/orgs/acme/environments"},
		{name: "repo-violations", route: repo + "/violations", path: api + "/violations"},

		{name: "artifacts", route: org + "/artifacts", path: "/orgs/acme/artifacts?digest=latest"},
		{name: "artifact", route: org + "/artifacts/{digest}",
			path: "/orgs/acme/artifacts/sha256:" + strings.Repeat("2b", 32)},

		{name: "repo", route: repo, path: api},
		{name: "repo-folded", path: api + "?folded=DRAFT,DEPLOYED&text=a"},
		{name: "repo-list", path: api + "?view=list"},
		{name: "repo-none", path: "/orgs/acme/repos/handbook"},
		{name: "commit", route: repo + "/commits/{sha}", path: api + "/commits/" + commitOf(s.shown)},
		{name: "commit-open", path: api + "/commits/" + commitOf(s.shown), then: func(v *visitor) { v.click("summary", "") }},
		{name: "transitions", route: repo + "/commits/{sha}/transitions",
			path: api + "/commits/" + commitOf("price-cache") + "/transitions"},
		{name: "commit-deployed", path: api + "/commits/" + commitOf("price-cache")},
		{name: "commit-draft", path: api + "/commits/" + commitOf("login-limit")},
		{name: "attestations", route: repo + "/attestations", path: api + "/attestations"},
		{name: "attestations-filtered", path: api + "/attestations?status=fail&since=2020-01-01"},
		{name: "attestation", route: repo + "/attestations/{id}", path: api + "/attestations/" + s.attestation},
		{name: "attestation-checked", path: api + "/attestations/" + s.attestation, then: func(v *visitor) {
			v.sees("Run the check")
			v.click("button", "Run the check")
			v.sees("steps passed")
		}},

		{name: "policy", route: repo + "/policy", path: api + "/policy"},
		{name: "policy-versions", route: repo + "/policy/versions", path: api + "/policy/versions"},
		{name: "policy-version", route: repo + "/policy/versions/{version}", path: api + "/policy/versions/3"},
		{name: "policy-edit", route: repo + "/policy/edit", path: api + "/policy/edit"},
		{name: "policy-invalid", path: api + "/policy/edit", then: editPolicy("Save", "threshold: 1", "threshold: 0")},
		{name: "policy-preview", path: api + "/policy/edit", then: editPolicy("Preview", `threshold: 2`, `threshold: 1`)},

		{name: "radar", route: repo + "/radar", path: api + "/radar"},
		{name: "radar-files", path: api + "/radar?view=files"},
		{name: "radar-none", path: "/orgs/acme/repos/handbook/radar"},

		{name: "tokens", route: org + "/settings/tokens", path: "/orgs/acme/settings/tokens"},
		{name: "token-revoke", path: "/orgs/acme/settings/tokens", then: func(v *visitor) { v.unfold("Revoke") }},
		{name: "token-new", route: org + "/settings/tokens/new", path: "/orgs/acme/settings/tokens/new"},
		{name: "token-invalid", path: "/orgs/acme/settings/tokens/new",
			then: submit([]string{"Name", strings.Repeat("long", 60)}, "Create token")},
		{name: "token-created", path: "/orgs/acme/settings/tokens/new",
			then: submit([]string{"Name", "release bot"}, "Create token")},

		{name: "identities", route: org + "/settings/identities", path: "/orgs/acme/settings/identities"},
		{name: "identity-edit", route: org + "/settings/identities/{id}/edit",
			path: "/orgs/acme/settings/identities/" + s.identity + "/edit"},
		{name: "identity-distrust", route: org + "/settings/identities/{id}/distrust",
			path: "/orgs/acme/settings/identities/" + s.identity + "/distrust"},
		{name: "identity-new", route: org + "/settings/identities/new", path: "/orgs/acme/settings/identities/new"},
		{name: "trusted-root", route: org + "/settings/trusted-root", path: "/orgs/acme/settings/trusted-root"},
		{name: "members", route: org + "/settings/members", path: "/orgs/acme/settings/members"},
		{name: "member-change", path: "/orgs/acme/settings/members", then: func(v *visitor) { v.unfold("Change") }},
		{name: "member-new", route: org + "/settings/members/new", path: "/orgs/acme/settings/members/new"},
		{name: "member-invalid", path: "/orgs/acme/settings/members/new", then: submit([]string{
			"Issuer", "okta", "Subject", "00u9", "Name", "cn=zoe,ou=dev,o=acme"}, "Add member")},
		{name: "member-rule-new", route: org + "/settings/member-rules/new", path: "/orgs/acme/settings/member-rules/new"},
		{name: "sign-ins", route: org + "/settings/sign-ins", path: "/orgs/acme/settings/sign-ins"},
		{name: "passkeys", route: org + "/settings/passkeys", path: "/orgs/acme/settings/passkeys"},
		{name: "audit", route: org + "/settings/audit", path: "/orgs/acme/settings/audit"},
		{name: "audit-filtered", path: "/orgs/acme/settings/audit?action=token&since=2020-01-01"},

		{name: "webhooks", route: hooks, path: api + "/webhooks"},
		{name: "webhooks-none", path: "/orgs/acme/repos/web/webhooks"},
		{name: "webhook-new", route: hooks + "/new", path: api + "/webhooks/new"},
		{name: "webhook-created", path: "/orgs/acme/repos/handbook/webhooks/new",
			then: submit([]string{"URL", "http://127.0.0.1:9000/ledger"}, "Create webhook")},
		{name: "webhook", route: hooks + "/{id}", path: hook},
		{name: "webhook-edit", route: hooks + "/{id}/edit", path: hook + "/edit"},
		{name: "webhook-rotate", route: hooks + "/{id}/rotate", path: hook + "/rotate"},
		{name: "webhook-rotated", path: hook + "/rotate", then: submit([]string{"Overlap", "24h"}, "Create new secret")},
		{name: "webhook-replay", route: hooks + "/{id}/replay", path: hook + "/replay"},
		{name: "delivery", route: hooks + "/{id}/deliveries/{delivery}", path: hook + "/deliveries/" + s.delivery},

		{name: "not-found", path: api + "/commits/" + strings.Repeat("ab", 20)},
	}
}

// notPages maps the GET routes that are not pages to the reason.
var notPages = map[string]string{
	"/{$}":                                "redirects to the org or to the sign-in",
	"/login/with/{provider}":              "redirects to a provider; TestPersonSignsInAndApproves follows it",
	"/login/callback/{provider}":          "where a provider sends people back to",
	"/static/{file}":                      "style, script and icon of every page",
	"/orgs/{org}/events":                  "the stream that updates pages",
	"/orgs/{org}/settings":                "redirects to the first page of the settings",
	"/orgs/{org}/settings/audit/download": "a download",
	"/orgs/{org}/repos/{repo}/attestations/{id}/envelope":  "a download",
	"/orgs/{org}/repos/{repo}/attestations/{id}/assertion": "a download",
	"/orgs/{org}/repos/{repo}/attestations/{id}/event":     "a download",
	"/orgs/{org}/repos/{repo}/attestations/{id}/key":       "a download",
	"/orgs/{org}/repos/{repo}/attestations/{id}/proof":     "a download",
}

// The tour visits every GET route of server/web.
func TestWebPagesAreComplete(t *testing.T) {
	want := map[string]bool{}
	for _, p := range (&stage{}).pages() {
		if p.route != "" {
			want[p.route] = true
		}
	}
	for _, route := range getRoutes() {
		if !want[route] && notPages[route] == "" {
			t.Errorf("no test visits %s: add it to pages or notPages", route)
		}
		delete(want, route)
	}
	for route := range want {
		t.Errorf("route %s no longer exists: remove it from pages", route)
	}
}

// getRoutes returns the patterns of the GET routes.
func getRoutes() []string {
	var routes []string
	for _, route := range web.Routes() {
		if route.Method == http.MethodGet {
			routes = append(routes, route.Pattern)
		}
	}
	return routes
}

// A tour visits the pages of a stage, in two tabs at once.
type tour struct {
	*stage
	browser   *browser
	setupPath string // the setup link of the server with an empty database
	setupURL  string // the base URL of this server
}

// newTour returns a tour of s. It starts the server for the setup pages and a
// browser.
func newTour(t *testing.T, s *stage) *tour {
	t.Helper()
	empty := newEmptyLedger(t)
	empty.start()

	link := regexp.MustCompile(`/setup\?key=\S+`)
	waitFor(t, "the setup link", 10*time.Second, func() bool { return link.MatchString(empty.log.String()) })
	return &tour{s, newBrowser(t), link.FindString(empty.log.String()), empty.url}
}

// pagesVariable is an environment variable. It limits a tour to the pages whose
// names have its value as a prefix.
const pagesVariable = "LEDGERD_E2E_PAGES"

// isVisited reports whether tours visit the page. Below the highest level they visit one of each route.
func (p *webPage) isVisited() bool {
	if prefix := os.Getenv(pagesVariable); prefix != "" {
		return strings.HasPrefix(p.name, prefix)
	}
	return p.route != "" || testenv.CurrentLevel() == testenv.Full
}

// each calls test for every page that is visited, with a visitor that has it open.
func (r *tour) each(t *testing.T, test func(*visitor, webPage)) {
	t.Helper()
	pages := make(chan webPage, 100)
	var setup []webPage
	for _, p := range r.pages() {
		switch {
		case !p.isVisited():
		case p.setup:
			setup = append(setup, p)
		default:
			pages <- p
		}
	}
	close(pages)

	first := r.browser.visitor(t, r.setupURL)
	for _, p := range setup { // in order: the link works once
		p.path = r.setupPath
		first.visit(t, p, test)
	}

	var tabs sync.WaitGroup
	for range 2 {
		guest, admin := r.browser.visitor(t, r.url), r.browser.visitor(t, r.url)
		admin.signIn(r.admin)
		tabs.Go(func() {
			for p := range pages {
				if p.signedOut {
					guest.visit(t, p, test)
				} else {
					admin.visit(t, p, test)
				}
			}
		})
	}
	tabs.Wait()
}

// visit opens a page in a wide window and calls test, as a subtest.
func (v *visitor) visit(t *testing.T, p webPage, test func(*visitor, webPage)) {
	t.Run(p.name, func(t *testing.T) {
		v.t = t
		v.window(wide, "light")
		v.open(p.path)
		if p.then != nil {
			p.then(v)
		}
		test(v, p)
		v.checkConsole(t)
	})
}

// Widths of the window, in pixels.
const (
	wide   = 1280
	narrow = 390
)
