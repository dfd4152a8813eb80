// Package idptest runs OpenID Connect providers on loopback for tests, at which people can sign in:
// with discovery, keys, an authorization endpoint and a token endpoint that verifies PKCE.
package idptest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/oidc/oidctest"
)

// The account of ledgerd at each provider.
const (
	ClientID     = "ledgerd"
	ClientSecret = "secret of the client"
)

// A Provider is an OpenID Connect provider. It signs in the person that SignInAs chose last, without
// asking; if no person was chosen, it shows a form. Set its fields before it is used.
type Provider struct {
	*oidctest.Provider
	// Now is the clock; [time.Now] by default.
	Now func() time.Time
	// Metadata replaces members of the discovery document; nil removes one.
	Metadata map[string]any
	// ChangeAnswer changes the parameters of the answer that it sends with the browser. It may be nil.
	ChangeAnswer func(url.Values)
	// SignToken returns the ID token with claims. If it is nil, the key of the provider signs them.
	SignToken func(claims map[string]any) string
	// IgnorePKCE has the token endpoint accept any verifier.
	IgnorePKCE bool
	// KeepCodes has it accept a code more than once.
	KeepCodes bool
	// TokenClaims changes the claims of ID tokens; nil removes one.
	TokenClaims map[string]any

	t      testing.TB
	mu     sync.Mutex
	person Person
	codes  map[string]grant
	asked  []url.Values // at the authorization endpoint
}

// A Person has an account at a provider. Claims has at least sub.
type Person struct {
	Claims map[string]any
	// AuthTime is when the person last proved who they are; zero: now.
	AuthTime time.Time
}

// A grant is the sign-in that a code stands for.
type grant struct {
	request url.Values
	person  Person
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{Provider: oidctest.New(t), Now: time.Now, t: t, codes: make(map[string]grant)}
	p.Provider.Answer(p.ServeHTTP)
	return p
}

// SignInAs chooses the person that the provider signs in.
func (p *Provider) SignInAs(person Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.person = person
}

// Replace has the provider answer with handle instead; nil: as a provider should.
func (p *Provider) Replace(handle http.HandlerFunc) {
	if handle == nil {
		handle = p.ServeHTTP
	}
	p.Provider.Answer(handle)
}

// Asked returns the parameters of the last request for a sign-in.
func (p *Provider) Asked() url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		return nil
	}
	return p.asked[len(p.asked)-1]
}

// ServeHTTP answers as a provider should.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		p.discover(w)
	case "/authorize":
		p.authorize(w, r)
	case "/token":
		p.token(w, r)
	default:
		p.Provider.ServeHTTP(w, r)
	}
}

func (p *Provider) discover(w http.ResponseWriter) {
	document := map[string]any{
		"issuer": p.URL, "jwks_uri": p.URL + "/jwks", "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint":                                 p.URL + "/token",
		"id_token_signing_alg_values_supported":          []string{"ES256"},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "client_secret_post"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	writeJSON(w, http.StatusOK, change(document, p.Metadata))
}

// change replaces members of a document; nil removes one.
func change(document, changes map[string]any) map[string]any {
	maps.Copy(document, changes)
	maps.DeleteFunc(document, func(_ string, v any) bool { return v == nil })
	return document
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// form asks who signs in.
var form = template.Must(template.New("form").Parse(`<!doctype html><html lang="en"><title>Test provider</title>
<h1>Test provider</h1><form method="post">
<label>Subject <input name="sub" required></label><label>Groups <input name="groups"></label>
<button>Sign in</button></form></html>`))

// authorize is the authorization endpoint (RFC 6749, 4.1.1).
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	request := r.URL.Query()
	back, err := url.Parse(request.Get("redirect_uri"))
	if err != nil || back.Host == "" || request.Get("client_id") != ClientID {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request)
	person := p.person
	p.mu.Unlock()
	if r.Method == http.MethodPost {
		person = Person{Claims: map[string]any{"sub": r.FormValue("sub"), "groups": []string{r.FormValue("groups")}}}
	}

	answer := url.Values{"state": {request.Get("state")}, "iss": {p.URL}}
	switch {
	case request.Get("response_type") != "code", request.Get("code_challenge_method") != "S256",
		request.Get("response_mode") != "query", len(request.Get("nonce")) < 43, len(request.Get("state")) < 43:
		answer.Set("error", "invalid_request")
	case person.Claims == nil:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = form.Execute(w, nil) // the browser may be gone
		return
	default:
		answer.Set("code", p.grant(request, person))
	}
	if p.ChangeAnswer != nil {
		p.ChangeAnswer(answer)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// grant returns a code.
func (p *Provider) grant(request url.Values, person Person) string {
	now := p.Now()
	age, err := strconv.Atoi(request.Get("max_age"))
	isStale := err == nil && now.Sub(person.AuthTime) > time.Duration(age)*time.Second
	if person.AuthTime.IsZero() || isStale || request.Get("prompt") == "login" {
		person.AuthTime = now
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = grant{request, person}
	return code
}

// token is the token endpoint (RFC 6749, 4.1.3, and RFC 7636, 4.6). A code works once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	}
	if id != ClientID || secret != ClientSecret {
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}

	p.mu.Lock()
	g, ok := p.codes[r.PostFormValue("code")]
	if !p.KeepCodes {
		delete(p.codes, r.PostFormValue("code"))
	}
	p.mu.Unlock()
	isVerified := p.IgnorePKCE || challengeOf(r.PostFormValue("code_verifier")) == g.request.Get("code_challenge")
	if !ok || r.PostFormValue("grant_type") != "authorization_code" ||
		r.PostFormValue("redirect_uri") != g.request.Get("redirect_uri") || !isVerified {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": p.idToken(g),
	})
}

// challengeOf returns the challenge of a verifier, by the method S256.
func challengeOf(verifier string) string {
	digest := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// Client returns an HTTP client that accepts the certificate of the provider.
func (p *Provider) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.Roots()}}}
}

// idToken returns the ID token of a grant.
func (p *Provider) idToken(g grant) string {
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"nonce": g.request.Get("nonce"), "auth_time": g.person.AuthTime.Unix(),
	}
	maps.Copy(claims, g.person.Claims)
	change(claims, p.TokenClaims)
	if p.SignToken != nil {
		return p.SignToken(claims)
	}
	return p.Token(claims)
}

// YAML returns the entry of the provider in a file of providers. By default, all orgs may use it.
func (p *Provider) YAML(name, label string, orgs ...string) string {
	if len(orgs) == 0 {
		orgs = []string{"'*'"}
	}
	return fmt.Sprintf("- {name: %s, label: %s, issuer: %q, client_id: %s, client_secret: %q, scopes: [openid], "+
		"orgs: [%s]}\n", name, label, p.URL, ClientID, ClientSecret, strings.Join(orgs, ", "))
}
