// Package exchange decides which tokens of an OpenID Connect issuer, such as the CI of a forge, an
// org exchanges for API tokens. It verifies them with the keys of their issuer, and compares their
// claims with the org's rules.
package exchange

import (
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/issuer"
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

// checkIssuerURL checks the URL of an issuer. If the keys are not pasted, they are read from there, which
// requires TLS.
func checkIssuerURL(s string, pasted bool) error {
	u, err := issuer.Parse(s, maxURL)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && !pasted {
		return errors.New("use https, or paste the keys of the issuer")
	}
	return nil
}

// Audience returns the audience that tokens for an org must have, below the base URL of the
// server.
func Audience(baseURL, org string) string { return baseURL + "/v1/orgs/" + org }
