package ca

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A NewAuthority is the body of a request to create a CA of an org.
type NewAuthority struct {
	// May has the predicates that those whose keys are certified may attest; * stands for all. It is
	// required for CI jobs. For people, it is review:* by default.
	May identity.Predicates `json:"may,omitzero"`
	// DNPattern is the pattern of the names that the CA certifies. Its ou begins with ci- or people-.
	// If it is empty, it is that of [Purpose.Pattern].
	DNPattern string `json:"dn_pattern,omitzero"`
	// Replace puts the new CA in the place of the one in use.
	Replace bool `json:"replace,omitzero"`
}

// Completed returns the request with its defaults.
func (n NewAuthority) Completed(p Purpose, org string) NewAuthority {
	if len(n.May) == 0 {
		n.May = p.may()
	}
	if n.DNPattern == "" {
		n.DNPattern = p.Pattern(org)
	}
	return n
}

// Identity validates the request, and returns the identity of the CA with a certificate.
func (n NewAuthority) Identity(p Purpose, org, certificate string) (identity.Identity, error) {
	n = n.Completed(p, org)
	if len(n.May) == 0 {
		return identity.Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "may",
			"required: the predicates that %s may attest, such as test:*, or * for all", p.Holders())
	}
	if !p.allows(n.May) {
		return identity.Identity{}, ledger.FieldErrorf(ledger.CodeInvalidField, "may",
			"%s may attest only reviews: use review:*, or some such as review:code", p.Holders())
	}
	i, err := identity.NewIdentity{Kind: identity.RootIdentity, PEM: certificate, May: n.May,
		DNPattern: n.DNPattern}.Identity()
	if err != nil {
		return i, err
	}
	pattern, err := identity.ParsePattern(i.DNPattern)
	if err == nil && !strings.HasPrefix(pattern.UnitStart(), p.unitPrefix()) {
		err = ledger.FieldErrorf(ledger.CodeInvalidField, "dn_pattern",
			"%q allows names of %s: its ou must begin with %s (use e.g. %s)", i.DNPattern, p.others().Holders(), p.unitPrefix(),
			p.Pattern(org))
	}
	return i, err
}

// A NewCertificate is the body of a request for a certificate.
type NewCertificate struct {
	// CSR is a certificate signing request as PEM.
	CSR string `json:"csr"`
	// Token is the OIDC token of the CI job.
	Token string `json:"token"`
	// Scope is the scope of an API token to return as well; 0 for no token.
	Scope ledger.Scope `json:"scope,omitzero"`
}

// A Certificate is a certificate that was issued to a CI job or a person.
type Certificate struct {
	// Certificate is the certificate as PEM.
	Certificate string `json:"certificate"`
	// DN is the name that it certifies, and Serial its serial number in hex.
	DN     string `json:"dn"`
	Serial string `json:"serial"`
	// Identity is the ID of the root that it chains to.
	Identity string      `json:"identity"`
	NotAfter ledger.Time `json:"not_after"`
	// APIToken is the secret of an API token of the job; empty if the request has no scope.
	APIToken string `json:"api_token,omitzero"`
}
