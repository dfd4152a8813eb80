// Package oidctest runs OpenID Connect issuers on loopback for tests, with real keys and tokens.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A Provider is an issuer with discovery, and one key at a time.
type Provider struct {
	// URL is the issuer, the claim iss.
	URL string

	t      testing.TB
	server *httptest.Server

	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	number int // of the key
	reads  int
	handle http.HandlerFunc // nil: as an issuer should
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	p := &Provider{t: t, key: NewKey(t), number: 1}
	p.server = httptest.NewTLSServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL
	t.Cleanup(p.server.Close)
	return p
}

// NewKey returns a new P-256 key.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.OK(t, err)
	return key
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	handle := p.handle
	if r.URL.Path == "/.well-known/openid-configuration" {
		p.reads++
	}
	p.mu.Unlock()
	if handle != nil {
		handle(w, r)
		return
	}
	p.ServeHTTP(w, r)
}

// ServeHTTP answers as an issuer should.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q, "id_token_signing_alg_values_supported": ["ES256"]}`, p.URL,
			p.URL+"/jwks")
	case "/jwks":
		fmt.Fprint(w, p.JWKS())
	default:
		http.NotFound(w, r)
	}
}

// Answer has the provider answer with handle instead; nil: as an issuer should.
func (p *Provider) Answer(handle http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = handle
}

// Reads returns how often the keys were read, from discovery on.
func (p *Provider) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads
}

// Rotate replaces the current key.
func (p *Provider) Rotate() {
	key := NewKey(p.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.number = key, p.number+1
}

// JWKS returns the key set.
func (p *Provider) JWKS() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return KeySet(p.t, p.keyID(), p.key.Public())
}

// KeySet returns a key set with one key.
func KeySet(t testing.TB, id string, key crypto.PublicKey) string {
	t.Helper()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key, KeyID: id, Use: "sig"}}})
	must.OK(t, err)
	return string(set)
}

func (p *Provider) keyID() string { return fmt.Sprintf("key-%d", p.number) }

// Certificate returns the certificate of the server, which is its own root.
func (p *Provider) Certificate() *x509.Certificate { return p.server.Certificate() }

// Roots returns the roots that verify the server.
func (p *Provider) Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(p.server.Certificate())
	return roots
}

// Token signs claims with the current key.
func (p *Provider) Token(claims map[string]any) string {
	p.t.Helper()
	p.mu.Lock()
	key, id := p.key, p.keyID()
	p.mu.Unlock()
	return Sign(p.t, jose.ES256, key, id, claims)
}

// Sign returns a token that is signed with a key. If id is empty, the token has no key ID.
func Sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"typ": "JWT"}}
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	must.OK(t, err)
	payload, err := json.Marshal(claims)
	must.OK(t, err)
	signed, err := signer.Sign(payload)
	must.OK(t, err)
	token, err := signed.CompactSerialize()
	must.OK(t, err)
	return token
}

// GitHub returns the claims of a token of GitHub Actions for a push to main of the repository 1234,
// that was issued at the time now. A change replaces a claim; nil removes it.
func (p *Provider) GitHub(audience string, now time.Time, changes ...map[string]any) map[string]any {
	claims := map[string]any{
		"iss": p.URL, "aud": audience, "jti": rand.Text(), "sub": "repo:acme/api:ref:refs/heads/main",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"repository": "acme/api", "repository_id": "1234", "repository_owner": "acme", "repository_owner_id": "99",
		"event_name": "push", "ref": "refs/heads/main", "ref_type": "branch", "run_id": "77", "run_number": "7",
		"run_attempt": "1", "sha": "0123456789012345678901234567890123456789", "runner_environment": "github-hosted",
		"job_workflow_ref": "acme/workflows/.github/workflows/ci.yml@refs/heads/main",
	}
	return changed(claims, changes)
}

// GitLab returns the claims of a token of GitLab for a push to main of the project 1234.
func (p *Provider) GitLab(audience string, now time.Time, changes ...map[string]any) map[string]any {
	claims := map[string]any{
		"iss": p.URL, "aud": audience, "jti": rand.Text(), "sub": "project_path:acme/api:ref_type:branch:ref:main",
		"iat": now.Unix(), "nbf": now.Add(-5 * time.Second).Unix(), "exp": now.Add(time.Hour).Unix(),
		"project_id": "1234", "project_path": "acme/api", "namespace_id": "99", "namespace_path": "acme",
		"pipeline_source": "push", "pipeline_id": "5", "job_id": "77", "ref": "main", "ref_type": "branch",
		"ref_path": "refs/heads/main", "ref_protected": "true", "sha": "0123456789012345678901234567890123456789",
		"ci_config_ref_uri": "gitlab.example.com/acme/api//.gitlab-ci.yml@refs/heads/main",
	}
	return changed(claims, changes)
}

func changed(claims map[string]any, changes []map[string]any) map[string]any {
	for _, change := range changes {
		maps.Copy(claims, change)
	}
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}
