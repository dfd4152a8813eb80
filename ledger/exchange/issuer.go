// Package exchange decides which tokens of an OpenID Connect issuer, such as the CI of a forge, an
// org exchanges for API tokens. It verifies them with the keys of their issuer, and compares their
// claims with the org's rules.
package exchange

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// The limits of issuers.
const (
	MaxIssuers = 20  // of an org
	maxURL     = 500 // bytes
)

// An Issuer is an OpenID Connect issuer whose tokens an org accepts.
type Issuer struct {
	ID  string `json:"id"`
	Org string `json:"org"`
	// URL is the value of the claim iss.
	URL string `json:"url"`
	// JWKS is the JSON Web Key Set with the keys of the issuer. If it is empty, the server asks the
	// issuer.
	JWKS      string      `json:"jwks,omitzero"`
	CreatedAt ledger.Time `json:"created_at,omitzero"`
}

// A NewIssuer is the body of a request to add an issuer.
type NewIssuer struct {
	URL  string `json:"url"`
	JWKS string `json:"jwks,omitzero"`
}

// Check returns a field error for the first field that is invalid.
func (n NewIssuer) Check() error {
	if err := checkIssuerURL(n.URL, n.JWKS != ""); err != nil {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "url", "%v", err)
	}
	if n.JWKS == "" {
		return nil
	}
	if _, err := ParseKeys([]byte(n.JWKS)); err != nil {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "jwks", "%v", err)
	}
	return nil
}

// checkIssuerURL checks the URL of an issuer. It is compared with the claim iss as it is. The keys
// of one without pasted keys are read from there, so it needs TLS.
func checkIssuerURL(text string, pasted bool) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		return fmt.Errorf("too long: at most %d bytes", maxURL)
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(text, "?# "):
		return fmt.Errorf("not the URL of an issuer (use the value of the claim iss, such as %s)", githubActions)
	case u.Scheme != "https" && !pasted:
		return fmt.Errorf("use https, or paste the keys of the issuer")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("use https or http")
	}
	return nil
}

// Audience returns the audience that tokens for an org must have, below the base URL of the
// server.
func Audience(baseURL, org string) string { return baseURL + "/v1/orgs/" + org }
