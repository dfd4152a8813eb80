package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/authority"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/transparency"
)

// A clock is the server's clock. Only tests advance it. It starts within the validity
// of the certificates of the cosign fixtures.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ms.Store(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) time() ledger.Time       { return ledger.TimeOf(c.now()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// A backend is a server on loopback with its own database file, the org acme, its
// repo api and a token of each scope. Every request and response is checked against
// openapi.yaml.
type backend struct {
	t      testing.TB
	clock  *clock
	store  *store.Store
	file   string // of the database
	server *Server
	url    string
	client *http.Client
	stream *http.Client // does not buffer responses
	log    *bytes.Buffer

	providers             member.Providers
	reader, writer, admin string // secrets of acme's tokens
}

func newBackend(t testing.TB, changes ...func(*Config)) *backend {
	t.Helper()
	return newBackendOn(t, nil, changes...)
}

// newBackendOn returns a backend that listens on pipes, or on loopback if pipes is
// nil.
func newBackendOn(t testing.TB, pipes *pipes, changes ...func(*Config)) *backend {
	t.Helper()
	b := &backend{t: t, clock: newClock(), log: new(bytes.Buffer), file: storetest.NewFile(t),
		providers: storetest.Providers()}
	db, err := store.Open(context.Background(), b.file,
		store.Options{Now: b.clock.now, Providers: b.providers, ParseRoot: sigstore.ParseRoot})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	b.store = db

	keys := filepath.Join(t.TempDir(), "keys")
	config := Config{Store: db, Now: b.clock.now, Logger: slog.New(slog.NewTextHandler(b.log, nil)), Version: "0.0.0-test",
		Authority: authority.New(authority.Config{Store: db,
			Keys: func() (*transparency.Keys, error) { return transparency.OpenKeys(keys, keys) }})}
	for _, change := range changes {
		change(&config)
	}
	b.server = New(config)
	network := pipes.serve(b.server.Handler())
	t.Cleanup(network.Close)
	b.url = network.URL
	transport := network.Client().Transport.(*http.Transport).Clone()
	if pipes != nil {
		transport.DialContext = pipes.dial
	}
	transport.MaxIdleConnsPerHost = 64
	t.Cleanup(transport.CloseIdleConnections)
	b.client = &http.Client{Transport: &checkedTransport{t: t, next: transport}}
	b.stream = &http.Client{Transport: transport}

	b.host("POST", "/v1/orgs", `{"name":"acme"}`).want(201)
	b.host("POST", "/v1/orgs/acme/repos", `{"name":"api"}`).want(201)
	b.reader, b.writer, b.admin = b.token("acme", "read"), b.token("acme", "write"), b.token("acme", "admin")
	return b
}

// in returns the backend for use in a subtest.
func (b *backend) in(t testing.TB) *backend {
	sub := *b
	sub.t = t
	return &sub
}

// token creates a token and returns its secret.
func (b *backend) token(org, scope string) string {
	b.t.Helper()
	resp := b.host("POST", "/v1/orgs/"+org+"/tokens",
		fmt.Sprintf(`{"name":%q,"scope":%q}`, scope+" of "+org, scope)).want(201)
	return decode[ledger.Token](resp).Secret
}

// A request is a request to the backend.
type request struct {
	method, path string
	token        string
	body         string
	header       map[string]string // overrides the defaults
}

// A response is a response with its complete body.
type response struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

func (b *backend) send(r request) response {
	b.t.Helper()
	return receive(b.t, b.client, b.url, r)
}

// host sends a request to the handler for the administrator of the host, in process.
func (b *backend) host(method, path, body string) response {
	b.t.Helper()
	client := &http.Client{Transport: &checkedTransport{t: b.t, next: inProcess{b.server.Host()}}}
	return receive(b.t, client, "http://host", request{method: method, path: path, body: body})
}

type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	p.handler.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

func receive(t testing.TB, client *http.Client, base string, r request) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, base+r.path, strings.NewReader(r.body))
	must.OK(t, err)
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.body != "" {
		req.Header.Set("Content-Type", typeJSON)
	}
	req.Header.Set("Accept", typeJSON) // otherwise events are streamed
	for name, value := range r.header {
		req.Header.Set(name, value)
	}

	resp, err := client.Do(req)
	must.OK(t, err)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return response{t, r.method + " " + r.path, resp.StatusCode, resp.Header, body}
}

func (b *backend) get(path string) response {
	b.t.Helper()
	token := b.reader
	if strings.Contains(path, "/tokens") || strings.Contains(path, "/webhooks") {
		token = b.admin // only admins can read them
	}
	return b.send(request{method: "GET", path: path, token: token})
}

func (b *backend) post(path, body string) response {
	b.t.Helper()
	return b.send(request{method: "POST", path: path, token: b.admin, body: body})
}

func (b *backend) put(path, body string) response {
	b.t.Helper()
	return b.send(request{method: "PUT", path: path, token: b.admin, body: body})
}

func (b *backend) patch(path, body string) response {
	b.t.Helper()
	return b.send(request{method: "PATCH", path: path, token: b.admin, body: body})
}

func (b *backend) delete(path string) response {
	b.t.Helper()
	return b.send(request{method: "DELETE", path: path, token: b.admin})
}

const attestationsPath = "/v1/orgs/acme/repos/api/attestations"

// attest posts an envelope with the write token.
func (b *backend) attest(envelope []byte) response {
	b.t.Helper()
	return b.send(request{method: "POST", path: attestationsPath, token: b.writer, body: string(envelope)})
}

// want ends the test unless the response has that status.
func (a response) want(status int) response {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

// wantProblem ends the test unless the response is a problem with that status and
// code.
func (a response) wantProblem(status int, code ledger.Code) ledger.Problem {
	a.t.Helper()
	a.want(status)
	p := decode[ledger.Problem](a)
	if p.Code != code || p.Status != status || p.Type != wire.ProblemTypes+string(code) ||
		p.RequestID != a.header.Get(wire.HeaderRequestID) {
		a.t.Fatalf("%s: %s, want %s with the response's status and request id: %s", a.what, p.Code, code, a.body)
	}
	return p
}

// wantFields is wantProblem for a problem that names exactly these fields.
func (a response) wantFields(status int, code ledger.Code, fields ...string) {
	a.t.Helper()
	p := a.wantProblem(status, code)
	var got []string
	for _, e := range p.Errors {
		got = append(got, e.Field)
	}
	if fmt.Sprint(got) != fmt.Sprint(fields) {
		a.t.Errorf("%s: fields %q, want %q: %s", a.what, got, fields, a.body)
	}
}

func decode[T any](a response) T {
	a.t.Helper()
	var v T
	if err := ledger.DecodeStrict(a.body, &v); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return v
}

// A signer signs with an Ed25519 key.
type signer struct {
	key ed25519.PrivateKey
	dn  string
	id  string // of its identity, if trusted
}

func newSigner(t testing.TB, dn string) *signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	return &signer{key: key, dn: dn}
}

// signer returns a new signer that acme trusts.
func (b *backend) signer(dn string) *signer {
	b.t.Helper()
	s := newSigner(b.t, dn)
	s.id = b.trust(identity.NewIdentity{Kind: identity.KeyIdentity, PEM: s.publicPEM(b.t), DN: dn}).ID
	return s
}

func (b *backend) trust(n identity.NewIdentity) identity.Identity {
	b.t.Helper()
	return decode[identity.Identity](b.post("/v1/orgs/acme/identities", toJSON(b.t, n)).want(201))
}

func (s *signer) publicPEM(t testing.TB) string {
	t.Helper()
	return must.PublicPEM(t, s.key.Public())
}

// statement returns a signed statement with a result for a predicate of a commit.
// Statements of different runs differ.
func (s *signer) statement(t testing.TB, commit, predicate string, status ledger.Status, run int) []byte {
	t.Helper()
	payload, err := attestation.NewStatement("git+https://git.example/acme/api", commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status, DurationMS: 1200},
		Annotations: map[string]string{"run": fmt.Sprint(run)},
	})
	must.OK(t, err)
	return s.sign(t, payload)
}

func (s *signer) sign(t testing.TB, payload []byte) []byte {
	t.Helper()
	return must.Get(attestation.SignDSSE(s.key, payload))(t)
}

// commitID returns the id of the n-th commit of the tests.
func commitID(n int) string { return fmt.Sprintf("%040x", 0xc0ffee0000+n) }

func commitPath(sha string) string { return "/v1/orgs/acme/repos/api/commits/" + sha }

// state returns the state of a commit.
func (b *backend) state(sha string) ledger.State {
	b.t.Helper()
	return decode[ledger.Commit](b.get(commitPath(sha)).want(200)).State
}

// count returns the numbers of acme's attestations and attestation events.
func (b *backend) count() (attestations, events int) {
	b.t.Helper()
	a := decode[ledger.Page[ledger.AttestationRecord]](b.get(attestationsPath + "?limit=500").want(200))
	e := decode[ledger.Page[any]](b.get("/v1/orgs/acme/events?limit=500&types=attestation").want(200))
	return len(a.Data), len(e.Data)
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// cosignCommit is the commit of the cosign fixtures.
const cosignCommit = "adbc8813901bba65827259daa8e22ff94ec1f30e"

func cosignFile(t testing.TB, name string) []byte {
	t.Helper()
	return must.Read(t, filepath.Join("..", "ledger", "testdata", "cosign", name))
}

// cosignAuthority returns the CA of the cosign fixtures.
func cosignAuthority(t testing.TB) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := identity.ParsePrivateKey(cosignFile(t, "ca.key"), nil)
	must.OK(t, err)
	certs, err := identity.ParseCertificates(cosignFile(t, "ca.crt"))
	must.OK(t, err)
	return key.(*ecdsa.PrivateKey), certs[0]
}
