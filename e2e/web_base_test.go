package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// basePath is the path of the stage's base URL in the tests of this file.
const basePath = "/tools/ledger"

// atBase makes a stage serve below the base path.
func (s *stage) atBase() {
	s.env = append(s.env, "LEDGERD_BASE_URL=https://tools.acme.example"+basePath)
}

// nginxBelow starts nginx with the stage below the base path, and returns the URL of the stage.
// nginx strips the base path from requests, or leaves it in them, as docs/operations.md shows.
func (s *stage) nginxBelow(strips bool) string {
	target := s.url
	if strips {
		target += "/"
	}
	return "http://" + s.nginx("location "+basePath+"/ { proxy_pass "+target+"; proxy_set_header Host $http_host; }") +
		basePath
}

// A person signs in, sees a live update, checks an attestation, searches and signs out, behind
// proxies that strip the base path and those that don't.
func TestWebBelowABasePath(t *testing.T) {
	testenv.Need(t, "chromium", "nginx")
	t.Parallel()
	s := newStage(t, (*stage).atBase)
	b := newBrowser(t)
	for name, strips := range map[string]bool{"nginx strips it": true, "nginx leaves it": false} {
		t.Run(name, func(t *testing.T) {
			v := b.visitor(t, s.nginxBelow(strips))
			v.window(wide, "light")
			v.open("/orgs/acme/repos/api")
			v.sees("API token")
			v.fill("API token", s.admin)
			v.press("Sign in")
			v.at("/orgs/acme/repos/api")

			v.sees("ledgerd live")
			v.waitSwap(func() {
				s.now = time.Now()
				s.record("api", commitOf("request-id"), act{0, "ci", "build:" + strings.ReplaceAll(name, " ", "-"), ledger.Pass,
					time.Second})
			})
			v.open("/orgs/acme/repos/api/attestations/" + s.attestation)
			v.sees("Run the check")
			v.click("button", "Run the check")
			v.sees("steps passed")
			v.open("/")
			v.at("/orgs/acme")
			v.press("ledgerd")
			v.at("/orgs/acme")
			v.staysBelow()

			v.press("Sign out")
			v.at("/login")
			v.open("/orgs/acme")
			v.sees("API token")
			v.checkConsole(t)
		})
	}
}

// Below a base path, no page loads anything from outside of it, and every form works.
func TestWebPagesBelowABasePath(t *testing.T) {
	testenv.From(t, testenv.Full, "visits all pages")
	testenv.Need(t, "chromium", "nginx")
	t.Parallel()
	s := newBusyStage(t, (*stage).atBase)
	url := s.nginxBelow(false)
	b := newBrowser(t)
	guest, admin := b.visitor(t, url), b.visitor(t, url)
	admin.signIn(s.admin)
	for _, p := range s.pages() {
		v := admin
		if p.signedOut {
			v = guest
		}
		if !p.setup && p.isVisited() {
			v.visit(t, p, func(v *visitor, _ webPage) { v.staysBelow() })
		}
	}
}

// at waits until the page with a path below the base path is shown.
func (v *visitor) at(path string) {
	v.t.Helper()
	waitFor(v.t, "the page "+basePath+path, 10*time.Second, func() bool { return v.path() == basePath+path })
}

// staysBelow checks that the page, all that it has loaded, and all that it links to on this host
// are below the base path.
func (v *visitor) staysBelow() {
	v.t.Helper()
	outside := evaluate[[]string](v, `[location.href,
		...performance.getEntriesByType('resource').map((e) => e.name),
		...['href', 'action', 'formaction'].flatMap((name) => [...document.querySelectorAll('[' + name + ']')].map(
			(e) => new URL(e.getAttribute(name), location.href).href)),
	].filter((url) => new URL(url).origin === location.origin && !url.startsWith(`+quote(v.url+"/")+`))`)
	for _, url := range outside {
		v.t.Errorf("%s leads to %s", v.path(), url)
	}
}
