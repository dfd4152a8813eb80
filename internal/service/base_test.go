package service

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/server/web"
)

const testBase = "/tools/ledger"

// A proxied is a service below a path of a reverse proxy, which has another program at its root.
type proxied struct {
	t       *testing.T
	service *Instance
	url     string // of the proxy
	browser *http.Client
	admin   string // an API token of acme
	api     *client.Client
}

// startBehind starts a service behind a proxy. The proxy may strip the base path from requests.
func startBehind(t *testing.T, strips bool) *proxied {
	t.Helper()
	var target *url.URL
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.SetXForwarded()
	}}
	network := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch isBase := r.URL.Path == testBase; {
		case !isBase && !strings.HasPrefix(r.URL.Path, testBase+"/"):
			t.Errorf("%s %s is outside the base path", r.Method, r.URL)
			http.NotFound(w, r)
		case strips && isBase:
			http.Redirect(w, r, testBase+"/", http.StatusMovedPermanently)
		case strips:
			http.StripPrefix(testBase, proxy).ServeHTTP(w, r)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(network.Close)

	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.BaseURL = config.BaseURL(network.URL + testBase)
	v, err := Start(t.Context(), s, discardLog())
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, v.Stop(0, time.Second)) })
	target = must.Get(url.Parse(strings.TrimSuffix(v.URL, testBase)))(t)

	jar := must.Get(cookiejar.New(nil))(t)
	return &proxied{t: t, service: v, url: network.URL, browser: &http.Client{
		Transport:     network.Client().Transport,
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fill creates an org with what its pages link to, through the proxy.
func (p *proxied) fill() {
	t, ctx := p.t, p.t.Context()
	host, err := p.service.Host()
	must.OK(t, err)
	_, err = host.CreateOrg(ctx, ledger.NewOrg{Name: "acme"})
	must.OK(t, err)
	token, err := host.CreateToken(ctx, "acme", ledger.NewToken{Name: "ada", Scope: ledger.Admin})
	must.OK(t, err)
	p.admin = token.Secret
	p.api, err = client.New(p.url+testBase, client.Options{Token: p.admin,
		HTTPClient: &http.Client{Transport: p.browser.Transport}})
	must.OK(t, err)

	_, err = p.api.CreateRepo(ctx, "acme", ledger.NewRepo{Name: "api"})
	must.OK(t, err)
	_, err = p.api.SetPolicy(ctx, "acme", "api", []byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`),
		"*")
	must.OK(t, err)
	_, err = p.api.CreateWebhook(ctx, "acme", "api", outbound.NewWebhook{URL: "https://receiver.example/"})
	must.OK(t, err)
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	_, err = p.api.AddIdentity(ctx, "acme", identity.NewIdentity{Kind: identity.KeyIdentity, DN: "cn=ci,ou=build,o=acme",
		PEM: must.PublicPEM(t, public)})
	must.OK(t, err)
	for i := range 60 { // more than one page
		p.attest(key, i)
	}
	for l := (ledger.Log{}); l.Events == 0 || l.Size < l.Events; time.Sleep(50 * time.Millisecond) {
		l, err = p.api.Log(ctx, "acme")
		must.OK(t, err)
	}
}

// attest records an attestation.
func (p *proxied) attest(key ed25519.PrivateKey, n int) {
	p.t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", fmt.Sprintf("%040x", n%7+1),
		attestation.ResultPredicate{Predicate: "test:go", Result: ledger.Result{Status: ledger.Pass},
			Annotations: map[string]string{"serial": fmt.Sprint(n)}})
	must.OK(p.t, err)
	envelope, err := attestation.SignDSSE(key, payload)
	must.OK(p.t, err)
	_, _, err = p.api.Record(p.t.Context(), "acme", "api", envelope)
	must.OK(p.t, err)
}

// do sends a request of the browser to a path of the proxy. The body is read and closed.
func (p *proxied) do(method, path string, form url.Values) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(form.Encode()))
	must.OK(p.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", p.url)
	}
	response, err := p.browser.Do(r)
	must.OK(p.t, err)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(p.t)
	return response, string(body)
}

// Behind proxies that strip the base path and those that don't, all that pages link to is below
// it.
func TestBasePathOfPages(t *testing.T) {
	for name, strips := range map[string]bool{"the proxy strips it": true, "the proxy leaves it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startBehind(t, strips)
			p.fill()
			p.signIn()
			p.crawl()
			p.submit()
			p.follow()
			p.signOut()
		})
	}
}

// signIn signs in from a page that needs it, and expects to return there.
func (p *proxied) signIn() {
	t := p.t
	const page = testBase + "/orgs/acme/repos/api?view=list"
	response, _ := p.do("GET", page, nil)
	login := response.Header.Get("Location")
	at, err := url.Parse(login)
	if err != nil || at.Path != testBase+"/login" || at.Query().Get("next") != page {
		t.Fatalf("the sign-in is at %s, %v, with the way back to %s", login, err, page)
	}
	response, _ = p.do("POST", at.Path, url.Values{"token": {p.admin}, "next": {page}})
	if to := response.Header.Get("Location"); to != page {
		t.Errorf("the sign-in leads to %s, want %s", to, page)
	}
	set := response.Header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Secure-ledgerd=") || !strings.Contains(set, "; Path="+testBase+";") {
		t.Errorf("the cookie is not limited to the base path: %s", set)
	}

	for _, next := range []string{"", "/", "/other", "/tools/ledgers", testBase + "/../other", testBase + "/%2e%2e/other",
		"//evil.example" + testBase + "/", "https://evil.example" + testBase + "/"} {
		response, _ := p.do("GET", testBase+"/login?"+url.Values{"next": {next}}.Encode(), nil)
		if to := response.Header.Get("Location"); to != testBase+"/" {
			t.Errorf("the sign-in with next=%s leads to %s", next, to)
		}
	}
}

// crawl follows all links from the home page.
func (p *proxied) crawl() {
	t := p.t
	routes := http.NewServeMux()
	found := map[string]bool{}
	for _, route := range web.Routes() {
		routes.Handle(route.Method+" "+testBase+route.Pattern, http.NotFoundHandler())
	}

	queue := []string{testBase, testBase + "/", testBase + "/login", testBase + "//orgs/acme", testBase + "/healthz"}
	seen := map[string]bool{}
	for len(queue) > 0 && len(seen) < 1000 {
		path := queue[0]
		queue = queue[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		response, body := p.do("GET", path, nil)
		_, pattern := routes.Handler(response.Request)
		found[strings.TrimPrefix(pattern, "GET "+testBase)] = true
		if response.StatusCode >= 400 {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
		queue = append(queue, p.links(response, body, routes)...)
	}

	for _, route := range web.Routes() {
		if route.Method == http.MethodGet && !found[route.Pattern] && !slices.Contains(unlinked, route.Pattern) {
			t.Errorf("no link leads to %s", route.Pattern)
		}
	}
}

// unlinked are the routes that no link of the crawled pages has.
var unlinked = []string{
	"/setup",                                               // is printed by serve
	"/login/with/{provider}",                               // there is no provider
	"/login/callback/{provider}",                           // is for providers
	"/orgs/{org}/events",                                   // never ends
	"/orgs/{org}/artifacts/{digest}",                       // no attestation is about one
	"/orgs/{org}/settings/audit/download",                  // is a form
	"/orgs/{org}/settings/passkeys",                        // the server takes no passkeys
	"/orgs/{org}/repos/{repo}/attestations/{id}/assertion", // no passkey has confirmed an attestation
	"/orgs/{org}/repos/{repo}/violations",                  // the ledger has no violation
	"/orgs/{org}/repos/{repo}/commits/{sha}/transitions",   // no commit has many
	"/orgs/{org}/violations",
	"/orgs/{org}/repos/{repo}/webhooks/{id}/deliveries/{delivery}",
}

// links returns what a response links to, and checks that all of it is below the base path.
func (p *proxied) links(response *http.Response, body string, routes *http.ServeMux) []string {
	var links []string
	at := response.Request.URL
	add := func(link string) (path string) {
		to, err := at.Parse(link)
		switch {
		case err != nil:
			p.t.Errorf("%s has the link %s: %v", at, link, err)
		case to.Host != at.Host: // such as a run of CI
		case to.Path != testBase && !strings.HasPrefix(to.Path, testBase+"/"):
			p.t.Errorf("%s has the link %s, outside the base path", at, link)
		default:
			to.Fragment = ""
			return to.RequestURI()
		}
		return ""
	}
	if to := response.Header.Get("Location"); to != "" {
		links = append(links, add(to))
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return links
	}

	tree := must.Get(html.Parse(strings.NewReader(body)))(p.t)
	for n := range tree.Descendants() {
		values := map[string]string{}
		for _, a := range n.Attr {
			values[a.Key] = a.Val
		}
		for _, key := range []string{"href", "src", "data-signature"} {
			if link, ok := values[key]; ok {
				links = append(links, add(link))
			}
		}
		if values["method"] == "get" {
			links = append(links, add(values["action"]))
		}
		if at := values["data-at"]; at != "" { // check.js
			links = append(links, add(at+"/event"), add(at+"/proof"))
		}
		for _, key := range []string{"action", "formaction", "data-live", "data-login", "data-at"} {
			if _, ok := values[key]; !ok {
				continue
			}
			path := add(values[key])
			r := httptest.NewRequest(strings.ToUpper(values["method"]), p.url+path, nil)
			if _, pattern := routes.Handler(r); pattern == "" && path != "" {
				p.t.Errorf("%s has %s=%s, which no route has", at, key, path)
			}
		}
	}
	return slices.DeleteFunc(links, func(link string) bool { return link == "" })
}

// submit submits forms that lead to other pages, and uses what they show.
func (p *proxied) submit() {
	t := p.t
	response, body := p.do("POST", testBase+"/orgs/acme/settings/tokens/new", url.Values{"name": {"bob"},
		"scope": {"read"}, "expires_in": {"24h"}})
	if want := "&#39;" + p.url + testBase + "/v1/orgs/acme/repos&#39;"; !strings.Contains(body, want) {
		t.Errorf("the page of a new token: %d without the command for %s: %s", response.StatusCode, want, body)
	}
	token, err := p.api.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "eve", Scope: ledger.Read})
	must.OK(t, err)
	const tokens = testBase + "/orgs/acme/settings/tokens"
	response, _ = p.do("POST", tokens+"/"+token.ID+"/revoke", nil)
	if to := response.Header.Get("Location"); to != tokens {
		t.Errorf("revoking a token leads to %d, %s", response.StatusCode, to)
	}

	r := must.Get(http.NewRequestWithContext(t.Context(), "POST", p.url+testBase+"/logout", nil))(t)
	r.Header.Set("Origin", "https://evil.example")
	refused, err := p.browser.Do(r)
	must.OK(t, err)
	refused.Body.Close()
	if refused.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %d, want 403", refused.StatusCode)
	}
}

// follow opens the streams of the API and of a page, and follows the headers of the API.
func (p *proxied) follow() {
	t := p.t
	for _, path := range []string{"/v1/orgs/acme/events?last_event_id=earliest",
		"/orgs/acme/events?types=attestation&last_event_id=earliest"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		r := must.Get(http.NewRequestWithContext(ctx, "GET", p.url+testBase+path, nil))(t)
		r.Header.Set("Accept", "text/event-stream")
		if strings.HasPrefix(path, "/v1") {
			r.Header.Set("Authorization", "Bearer "+p.admin)
		}
		response, err := p.browser.Do(r)
		must.OK(t, err)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: {") {
		}
		if lines.Err() != nil || lines.Text() == "" {
			t.Errorf("%s: no event: %v", path, lines.Err())
		}
		cancel()
		response.Body.Close()
	}

	r, err := http.NewRequestWithContext(t.Context(), "GET", p.url+testBase+"/v1/orgs/acme/repos/api/attestations", nil)
	must.OK(t, err)
	r.Header.Set("Authorization", "Bearer "+p.admin)
	response, err := p.browser.Do(r)
	must.OK(t, err)
	response.Body.Close()
	if link := response.Header.Get("Link"); !strings.HasPrefix(link, "<"+testBase+"/v1/orgs/acme/repos/api/") {
		t.Errorf("Link: %s", link)
	}
}

// signOut signs out, and expects that the session has ended.
func (p *proxied) signOut() {
	response, _ := p.do("POST", testBase+"/logout", nil)
	if to := response.Header.Get("Location"); to != testBase+"/login" {
		p.t.Errorf("signing out leads to %s", to)
	}
	if cookies := response.Cookies(); len(cookies) != 2 || cookies[0].Path != testBase || cookies[1].Path != testBase {
		p.t.Errorf("signing out removes %v", cookies)
	}
	if response, _ := p.do("GET", testBase+"/orgs/acme", nil); response.StatusCode != http.StatusSeeOther {
		p.t.Errorf("after signing out: %d", response.StatusCode)
	}
}

// Who reaches the server directly needs no base path, except that metrics have none.
func TestBasePathOfTheServerItself(t *testing.T) {
	s := config.Default()
	s.Listen, s.Database = "127.0.0.1:0", config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.BaseURL = "https://tools.acme.example" + testBase
	v, err := Start(t.Context(), s, discardLog())
	must.OK(t, err)
	defer func() { must.OK(t, v.Stop(0, time.Second)) }()
	root, isBelow := strings.CutSuffix(v.URL, testBase)
	if !isBelow || !strings.HasPrefix(v.SetupURL(), v.URL+"/setup?key=") {
		t.Errorf("the server is at %s, and the setup link is %s", v.URL, v.SetupURL())
	}

	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/openapi.yaml": 200, "/login": 200,
		testBase + "/healthz": 200, testBase + "/readyz": 200, testBase + "/v1/openapi.yaml": 200, testBase + "/login": 200,
		testBase + "/metrics": 404, testBase + testBase + "/login": 404, "/tools/ledgers/login": 404, "/tools/login": 404,
		"/tools/%6cedger/login": 200, testBase + "/static/..%2Flogin": 404, strings.TrimPrefix(v.SetupURL(), root): 200,
	} {
		response, err := http.Get(root + path)
		must.OK(t, err)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, response.StatusCode, want)
		}
	}
}

// A base path cannot begin like a path that the server has without one.
func TestBasePathIsUnambiguous(t *testing.T) {
	for _, route := range web.Routes() {
		first, _, _ := strings.Cut(route.Pattern[1:], "/")
		if first == "{$}" {
			continue
		}
		if err := new(config.BaseURL).UnmarshalText([]byte("https://tools.acme.example/" + first)); err == nil {
			t.Errorf("the base path may be /%s, which the server has itself", first)
		}
	}
}
