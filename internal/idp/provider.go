// Package idp signs people in with OpenID Connect providers, by the authorization code flow with PKCE
// (OpenID Connect Core 1.0, RFC 7636, RFC 9207, RFC 9700).
package idp

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ledgerd/ledgerd/internal/boundedhttp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

const (
	// metadataAge is the age from which the metadata and the keys of a provider are read again.
	metadataAge = time.Hour
	// retryInterval is the shortest time between two attempts to read them.
	retryInterval = 5 * time.Second
	// maxFinishing is the maximum number of sign-ins that ask a provider at the same time.
	maxFinishing = 16

	maxAnswer = 256 << 10 // bytes of an answer
	maxCode   = 4096      // bytes of an authorization code
)

// algorithms are those with which ID tokens may be signed: all asymmetric ones.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
		oidc.PS512, oidc.EdDSA}
}

// Options configures Providers.
type Options struct {
	// CallbackURL is the URL at which this server gets the answers of providers. The name of the
	// provider follows, after a slash.
	CallbackURL string
	// RootCAs verify the certificates of providers. If nil, they are those of the system.
	RootCAs   *x509.CertPool
	UserAgent string
	// Logger receives why a sign-in failed. It may be nil.
	Logger *slog.Logger
	// Now returns the current time; nil: [time.Now].
	Now func() time.Time
}

// Providers are the providers with which people can sign in. Their metadata is read lazily, so the
// server starts even if a provider is down.
type Providers []*Provider

// A Provider is a provider of people's accounts. The methods are safe for concurrent use.
type Provider struct {
	config      Config
	callbackURL string
	http        *http.Client
	log         *slog.Logger
	now         func() time.Time
	finishing   chan struct{} // has one element for each sign-in that asks the provider

	// reading has one element while a goroutine uses what follows.
	reading chan struct{}
	found   *metadata
	foundAt time.Time
	triedAt time.Time
	err     error // of the last attempt
}

// metadata is the metadata of a provider.
type metadata struct {
	oauth2   oauth2.Config
	verifier *oidc.IDTokenVerifier
	// sendsIssuer reports whether the provider names itself in its answers (RFC 9207).
	sendsIssuer bool
}

// New returns the providers of a file.
func New(configs []Config, o Options) Providers {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	// The libraries for OAuth and OpenID Connect read answers without a limit.
	client := boundedhttp.Config{MaxAnswer: maxAnswer, RootCAs: o.RootCAs, UserAgent: o.UserAgent, KeepAlive: true}
	var providers Providers
	for _, c := range configs {
		providers = append(providers, &Provider{
			config: c, callbackURL: o.CallbackURL + "/" + c.Name,
			http: boundedhttp.NewClient(client),
			log:  o.Logger.With("provider", c.Name), now: o.Now,
			finishing: make(chan struct{}, maxFinishing), reading: make(chan struct{}, 1),
		})
	}
	return providers
}

// Find returns the provider with a name, or nil.
func (ps Providers) Find(name string) *Provider {
	for _, p := range ps {
		if p.config.Name == name {
			return p
		}
	}
	return nil
}

// OverHTTPS reports whether providers send people back to this server over HTTPS.
func (ps Providers) OverHTTPS() bool {
	return len(ps) > 0 && strings.HasPrefix(ps[0].callbackURL, "https:")
}

// Name returns the name of the provider in paths.
func (p *Provider) Name() string { return p.config.Name }

// Label returns the name of the provider for people.
func (p *Provider) Label() string { return p.config.Label }

func (p *Provider) time() ledger.Time { return ledger.TimeOf(p.now()) }

// Begin begins a sign-in. It returns the URL at which the person signs in. A next page with a path that
// is too long for a cookie is dropped. If the provider cannot be reached, the error has
// CodeIssuerUnavailable.
func (p *Provider) Begin(ctx context.Context, r Request) (f Flow, location string, err error) {
	m, err := p.metadata(ctx)
	if err != nil {
		return f, "", err
	}
	f = newFlow(p.config.Name, r, p.time())
	if len(f.Encode()) > MaxFlow {
		r.Next = ""
		f = newFlow(p.config.Name, r, p.time())
	}

	options := []oauth2.AuthCodeOption{
		oauth2.S256ChallengeOption(f.verifier()), oidc.Nonce(f.nonce()),
		oauth2.SetAuthURLParam("response_mode", "query"),
	}
	if r.MaxAge != nil {
		options = append(options, oauth2.SetAuthURLParam("max_age", strconv.Itoa(*r.MaxAge)))
		if *r.MaxAge == 0 {
			options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
		}
	}
	return f, m.oauth2.AuthCodeURL(f.state(), options...), nil
}

// Finish returns the account of the person who has signed in, from the parameters of the provider's
// answer. If the answer does not count, the error has CodeUnauthenticated; if the provider cannot be
// reached, CodeIssuerUnavailable.
func (p *Provider) Finish(ctx context.Context, f Flow, answer url.Values) (a member.Account, err error) {
	if err := f.check(p.config.Name, answer, p.time()); err != nil {
		return a, err
	}
	if err := p.acquire(ctx); err != nil {
		return a, err
	}
	defer func() { <-p.finishing }()

	m, err := p.metadata(ctx)
	if err != nil {
		return a, err
	}
	code, err := p.codeOf(answer, m.sendsIssuer)
	if err != nil {
		return a, err
	}
	raw, err := p.redeem(ctx, m, code, f)
	if err != nil {
		return a, err
	}
	if a, err = p.verify(ctx, m, raw, f); err != nil {
		p.log.WarnContext(ctx, "the ID token of a provider is not valid", "error", err)
		return a, refuse("the ID token of %s is not valid (see the server log)", p.config.Label)
	}
	return a, nil
}

// acquire waits until the provider may be asked for one more sign-in. A slow provider must not occupy
// the server.
func (p *Provider) acquire(ctx context.Context) error {
	wait := time.NewTimer(boundedhttp.Timeout)
	defer wait.Stop()
	select {
	case p.finishing <- struct{}{}:
		return nil
	case <-wait.C:
		return p.unavailable(ctx, fmt.Errorf("%d sign-ins wait for it", maxFinishing))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// codeOf returns the authorization code of an answer (RFC 6749, 4.1.2, and RFC 9207).
func (p *Provider) codeOf(answer url.Values, sendsIssuer bool) (string, error) {
	issuer, code, failure := answer["iss"], answer["code"], answer["error"]
	switch {
	case len(issuer) > 1 || len(issuer) == 1 && issuer[0] != p.config.Issuer:
		return "", refuse("the answer is not from %s", p.config.Label)
	case len(issuer) == 0 && sendsIssuer:
		return "", refuse("the answer does not name %s as its issuer", p.config.Label)
	case len(failure) == 1 && failure[0] == "access_denied":
		return "", refuse("%s did not sign you in: you or its policy have declined (access_denied)", p.config.Label)
	case len(failure) > 0:
		return "", refuse("%s did not sign you in (%s)", p.config.Label, errorCode(failure[0]))
	case len(code) != 1 || code[0] == "" || len(code[0]) > maxCode:
		return "", refuse("the answer of %s has no code", p.config.Label)
	}
	return code[0], nil
}

// errorCode returns an error code of OAuth. Other texts, which could be anything, are replaced.
func errorCode(code string) string {
	if len(code) > 60 || strings.ContainsFunc(code, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "unknown error"
	}
	return code
}

// redeem exchanges a code for an ID token.
func (p *Provider) redeem(ctx context.Context, m *metadata, code string, f Flow) (string, error) {
	token, err := m.oauth2.Exchange(oidc.ClientContext(ctx, p.http), code, oauth2.VerifierOption(f.verifier()))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		// The log has no body, since that may contain secrets.
		reason := errorCode(refused.ErrorCode)
		if reason == "invalid_grant" {
			return "", refuse("%s does not accept the code of the sign-in: it was used, has expired, or belongs to another",
				p.config.Label)
		}
		return "", p.unavailable(ctx, fmt.Errorf("the token endpoint answers %s with %q", refused.Response.Status, reason))
	}
	if err != nil {
		return "", p.unavailable(ctx, err)
	}

	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > maxToken {
		return "", p.unavailable(ctx, fmt.Errorf("the token endpoint sends an ID token of %d bytes, want 1 to %d", len(raw),
			maxToken))
	}
	return raw, nil
}

// verify verifies an ID token.
func (p *Provider) verify(ctx context.Context, m *metadata, raw string, f Flow) (a member.Account, err error) {
	if strings.Count(raw, ".") != 2 || strings.HasPrefix(raw, "{") {
		return a, errors.New("it is not a signed token in the compact form")
	}
	token, err := m.verifier.Verify(ctx, raw)
	if err != nil {
		return a, err
	}
	var payload json.RawMessage
	if err := token.Claims(&payload); err != nil {
		return a, err
	}
	return parseAccount(payload, p.config, f, p.time())
}

// metadata returns the metadata of the provider. It reads them at most once per retryInterval.
func (p *Provider) metadata(ctx context.Context) (*metadata, error) {
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	now := p.now()
	isFresh := p.found != nil && now.Sub(p.foundAt) < metadataAge
	isEarly := !p.triedAt.IsZero() && now.Sub(p.triedAt) < retryInterval
	if !isFresh && !isEarly {
		// Others wait for the result, so it does not end with this request.
		found, err := p.discover(context.WithoutCancel(ctx))
		p.triedAt, p.err = now, nil
		if err == nil {
			p.found, p.foundAt = found, now
		} else {
			p.err = p.unavailable(ctx, err)
		}
	}
	if p.found == nil {
		return nil, p.err
	}
	return p.found, nil // stale metadata is better than an error
}

// discover reads the metadata of the provider (OpenID Connect Discovery 1.0).
func (p *Provider) discover(ctx context.Context) (*metadata, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.http), boundedhttp.Timeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%.500s", err) // it may quote the answer
	}
	var m struct {
		Keys        string   `json:"jwks_uri"`
		Methods     []string `json:"token_endpoint_auth_methods_supported"`
		SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&m); err != nil {
		return nil, err
	}
	endpoint := provider.Endpoint()
	for _, e := range []struct{ name, address string }{
		{"authorization_endpoint", endpoint.AuthURL}, {"token_endpoint", endpoint.TokenURL}, {"jwks_uri", m.Keys},
	} {
		if err := checkEndpoint(e.address, p.config.Issuer); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}

	endpoint.AuthStyle = styleOf(m.Methods)
	return &metadata{
		oauth2: oauth2.Config{ClientID: p.config.ClientID, ClientSecret: string(p.config.ClientSecret),
			Endpoint: endpoint, RedirectURL: p.callbackURL, Scopes: p.config.Scopes},
		verifier: oidc.NewVerifier(p.config.Issuer, &keySet{http: p.http, url: m.Keys}, &oidc.Config{
			ClientID: p.config.ClientID, SupportedSigningAlgs: algorithms(), Now: p.now}),
		sendsIssuer: m.SendsIssuer,
	}, nil
}

// checkEndpoint returns an error unless the URL of an endpoint has https, or http if the issuer has.
func checkEndpoint(address, issuer string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("%.200q is not a URL", address)
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && strings.HasPrefix(issuer, "http:")) {
		return fmt.Errorf("%.200q does not begin with https://", address)
	}
	return nil
}

// styleOf returns how the client authenticates itself: with HTTP Basic, which is the default, unless
// the provider only supports the secret in the form.
func styleOf(methods []string) oauth2.AuthStyle {
	style := oauth2.AuthStyleInHeader
	for _, method := range methods {
		switch method {
		case "client_secret_basic":
			return oauth2.AuthStyleInHeader
		case "client_secret_post":
			style = oauth2.AuthStyleInParams
		}
	}
	return style
}

// unavailable logs why the provider cannot be used, and returns an error without the reason.
func (p *Provider) unavailable(ctx context.Context, err error) error {
	p.log.WarnContext(ctx, "a provider cannot be used", "error", err)
	return ledger.Errorf(ledger.CodeIssuerUnavailable, "%s cannot be used now: try again later, or sign in with an API "+
		"token (the server log says why)", p.config.Label)
}
