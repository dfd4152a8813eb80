package web_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// A clock is the server's clock. Only tests advance it.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) time() ledger.Time       { return ledger.TimeOf(c.now()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// An env is the web interface on loopback, with a real server and a real database
// file.
type env struct {
	t     testing.TB
	clock *clock
	db    *store.Store
	guard *dispatch.Guard // refuses private addresses except loopback
	api   *server.Server
	site  *web.Site
	host  *client.Client // with full permissions
	url   string
	log   *bytes.Buffer

	reader, writer, admin string // secrets of tokens of acme

	// problem is why acme's log is not signed, and witnesses lists its witnesses.
	problem   string
	witnesses []ledger.LogWitness
	database  string // path of the file
	// providers are those that orgs may use. A signInEnv adds its own.
	providers member.Providers
}

// party is the domain and the origin of passkeys.
var party = passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"}

// newEmptyEnv returns an env without an org.
func newEmptyEnv(t testing.TB) *env { return newEmptyEnvIn(t, storetest.NewFile(t)) }

// newEmptyEnvIn is newEmptyEnv, with a new database of any engine.
func newEmptyEnvIn(t testing.TB, database string) *env {
	t.Helper()
	e := &env{t: t, clock: new(clock), log: new(bytes.Buffer), providers: storetest.Providers()}
	e.clock.ms.Store(time.Date(2030, 11, 30, 9, 0, 0, 0, time.UTC).UnixMilli())
	e.database = database
	db, err := store.Open(context.Background(), e.database, store.Options{Now: e.clock.now, Providers: e.providers,
		ParseRoot: sigstore.ParseRoot})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	e.db, e.guard = db, dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	logger := slog.New(slog.NewTextHandler(e.log, nil))

	keys := filepath.Join(t.TempDir(), "keys")
	e.api = server.New(server.Config{Store: db, Authority: authority.New(authority.Config{Store: db,
		Keys: func() (*transparency.Keys, error) { return transparency.OpenKeys(keys, keys) }}),
		Now: e.clock.now, Logger: logger, CheckTarget: e.guard.Check,
		Party: party,
		Logs: server.Logs{Signing: e.problems,
			Witnesses: func(string) []ledger.LogWitness { return e.witnesses }}})
	e.site, err = web.New(web.Config{API: e.api, RPID: party.ID, Logger: logger, Now: e.clock.now})
	must.OK(t, err)
	e.host, err = client.New(
		"http://host", client.Options{HTTPClient: &http.Client{Transport: client.InProcess(e.api.Host())}})
	must.OK(t, err)
	network := httptest.NewServer(e.site.Handler())
	t.Cleanup(network.Close)
	t.Cleanup(e.api.EndStreams)
	e.url = network.URL
	return e
}

func (e *env) problems() map[string]string {
	if e.problem == "" {
		return nil
	}
	return map[string]string{"acme": e.problem}
}

// newEnv returns an env with the org acme, its repo api and a token of each scope.
func newEnv(t testing.TB) *env { return newEnvIn(t, storetest.NewFile(t)) }

func newEnvIn(t testing.TB, database string) *env {
	t.Helper()
	e := newEmptyEnvIn(t, database)
	_, err := e.host.CreateOrg(t.Context(), ledger.NewOrg{Name: "acme"})
	must.OK(t, err)
	_, err = e.host.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"})
	must.OK(t, err)
	e.reader, e.writer, e.admin = e.token("acme", ledger.Read).Secret, e.token("acme", ledger.Write).Secret,
		e.token("acme", ledger.Admin).Secret
	return e
}

// in returns a copy of the env for a subtest.
func (e *env) in(t testing.TB) *env {
	sub := *e
	sub.t = t
	return &sub
}

func (e *env) token(org string, scope ledger.Scope) ledger.Token {
	e.t.Helper()
	token, err := e.host.CreateToken(
		e.t.Context(), org, ledger.NewToken{Name: scope.String() + " of " + org, Scope: scope})
	must.OK(e.t, err)
	return token
}

// A browser is an HTTP client with cookies that does not follow redirects.
type browser struct {
	t      testing.TB
	url    string
	client *http.Client
	header map[string]string // of every request
}

func (e *env) browser() *browser {
	e.t.Helper()
	jar := must.Get(cookiejar.New(nil))(e.t)
	return &browser{t: e.t, url: e.url, client: &http.Client{
		Jar:           jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signIn returns a browser that is signed in with the token.
func (e *env) signIn(token string) *browser {
	e.t.Helper()
	w := e.browser()
	w.post("/login", url.Values{"token": {token}}).want(303)
	return w
}

// A page is a complete response.
type page struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   string
}

func (w *browser) get(path string) page {
	w.t.Helper()
	return w.send("GET", path, nil)
}

// post sends a form with the headers of a same-origin request.
func (w *browser) post(path string, form url.Values) page {
	w.t.Helper()
	return w.send("POST", path, form)
}

func (w *browser) send(method, path string, form url.Values) page {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(form.Encode()))
	must.OK(w.t, err)
	if method == "POST" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", w.url)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, value := range w.header {
		req.Header.Set(name, value)
	}
	resp, err := w.client.Do(req)
	must.OK(w.t, err)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(w.t)
	return page{w.t, method + " " + path, resp.StatusCode, resp.Header, string(body)}
}

// want fails the test unless the page has the status.
func (p page) want(status int) page {
	p.t.Helper()
	if p.status != status {
		p.t.Fatalf("%s: %d, want %d: %s", p.what, p.status, status, p.body)
	}
	return p
}

// redirectsTo checks that the page redirects to the location.
func (p page) redirectsTo(location string) page {
	p.t.Helper()
	if got := p.want(303).header.Get("Location"); got != location {
		p.t.Errorf("%s redirects to %q, want %q", p.what, got, location)
	}
	return p
}

// has checks that the page shows each text.
func (p page) has(texts ...string) page {
	p.t.Helper()
	shown := p.text()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			p.t.Errorf("%s does not show %q: %s", p.what, text, shown)
		}
	}
	return p
}

// hasNot checks that neither the page's text nor its HTML contains any of the
// texts.
func (p page) hasNot(texts ...string) page {
	p.t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) || strings.Contains(p.text(), text) {
			p.t.Errorf("%s contains %q", p.what, text)
		}
	}
	return p
}

// hasError checks that the page shows an error with the text under a field.
func (p page) hasError(field, text string) page {
	p.t.Helper()
	for n := range p.tree().Descendants() {
		if n.Type != html.ElementNode || attribute(n, "id") != "field-"+field+"-note" {
			continue
		}
		for inner := range n.Descendants() {
			if inner.Type == html.TextNode && attribute(inner.Parent, "class") == "error" && strings.Contains(inner.Data, text) {
				return p
			}
		}
	}
	p.t.Errorf("%s: no error %q under the field %s: %s", p.what, text, field, p.text())
	return p
}

// value returns the value of a form field.
func (p page) value(field string) string {
	p.t.Helper()
	for n := range p.tree().Descendants() {
		if n.Type != html.ElementNode || attribute(n, "name") != field {
			continue
		}
		if n.Data == "textarea" && n.FirstChild != nil {
			return n.FirstChild.Data
		}
		return attribute(n, "value")
	}
	return ""
}

// text returns the text of the page, with single spaces.
func (p page) text() string {
	var words []string
	for n := range p.tree().Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "script" && n.Parent.Data != "style" {
			words = append(words, strings.Fields(n.Data)...)
		}
	}
	return strings.Join(words, " ")
}

func (p page) tree() *html.Node {
	p.t.Helper()
	return must.Get(html.Parse(strings.NewReader(p.body)))(p.t)
}

// elements returns the elements with the name and with all attributes, given as
// name, value pairs.
func (p page) elements(name string, attributes ...string) []*html.Node {
	p.t.Helper()
	var elements []*html.Node
	for n := range p.tree().Descendants() {
		matches := n.Type == html.ElementNode && n.Data == name
		for i := 0; matches && i < len(attributes); i += 2 {
			matches = attribute(n, attributes[i]) == attributes[i+1]
		}
		if matches {
			elements = append(elements, n)
		}
	}
	return elements
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// A signer is a key that acme trusts.
type signer struct {
	key ed25519.PrivateKey
	dn  string
}

func (e *env) signer(dn string) *signer {
	e.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(e.t, err)
	text := must.PublicPEM(e.t, key.Public())
	_, err = e.host.AddIdentity(e.t.Context(), "acme", identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn,
		May: identity.Predicates{"*", "merge:*", "baseline:*"}})
	must.OK(e.t, err)
	return &signer{key, dn}
}

// attest records an attestation on a commit of acme/api.
func (e *env) attest(s *signer, commit, predicate string, status ledger.Status) ledger.AttestationRecord {
	e.t.Helper()
	return e.send(s, func() ([]byte, error) {
		return attestation.NewStatement("git+https://git.example/acme/api", commit, attestation.ResultPredicate{
			Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
			FinishedOn: e.clock.time(),
		})
	})
}

// send signs and records a statement.
func (e *env) send(s *signer, statement func() ([]byte, error)) ledger.AttestationRecord {
	e.t.Helper()
	payload, err := statement()
	must.OK(e.t, err)
	envelope := must.Get(attestation.SignDSSE(s.key, payload))(e.t)
	record, _, err := e.host.Record(e.t.Context(), "acme", "api", envelope)
	must.OK(e.t, err)
	return record
}

// deploy takes a commit by Dora to DEPLOYED. ci signs its tests and its deployment.
func (e *env) deploy(ci, reviewer *signer, commit string) {
	e.t.Helper()
	e.push(commit, ledger.Registration{Author: ledger.Author{Name: "Dora"}})
	e.attest(ci, commit, "test:go", ledger.Pass)
	e.attest(reviewer, commit, "review:code", ledger.Pass)
	e.attest(ci, commit, "deploy:prod", ledger.Pass)
}

// push registers a commit of acme/api.
func (e *env) push(commit string, r ledger.Registration) {
	e.t.Helper()
	_, _, err := e.host.Register(e.t.Context(), "acme", "api", commit, r)
	must.OK(e.t, err)
}
