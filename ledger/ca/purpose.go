package ca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A Purpose says whose keys a CA certifies. An org has a CA of each purpose.
type Purpose string

// The purposes.
const (
	Jobs   Purpose = "ci"     // CI jobs
	People Purpose = "people" // members, each for one statement
)

// unitPrefix begins the OU of all names that a CA of the purpose certifies. It keeps CI jobs and
// people distinct.
func (p Purpose) unitPrefix() string { return string(p) + "-" }

// Pattern returns the pattern of the names that the CA of an org certifies by default.
func (p Purpose) Pattern(org string) string { return "ou=" + p.unitPrefix() + "*,o=" + org }

// Name returns the name of the CA in URLs and commands.
func (p Purpose) Name() string { return string(p) + "-ca" }

// title returns the name of the CA in its certificate.
func (p Purpose) title() string {
	if p == People {
		return "People CA"
	}
	return "CI CA"
}

// Holders returns what messages call those whose keys are certified.
func (p Purpose) Holders() string {
	if p == People {
		return "people"
	}
	return "CI jobs"
}

// holder returns what messages call one of them.
func (p Purpose) holder() string {
	if p == People {
		return "a person"
	}
	return "a CI job"
}

// example returns a name that the CA of an org certifies.
func (p Purpose) example() string {
	if p == People {
		return "cn=ann,ou=people-dev,o=acme"
	}
	return "cn=api,ou=ci-build,o=acme"
}

// others returns the purpose of the names that a CA of the purpose must not certify.
func (p Purpose) others() Purpose {
	if p == People {
		return Jobs
	}
	return People
}

// may returns the predicates that may be attested by default; nil if an admin must choose them.
func (p Purpose) may() identity.Predicates {
	if p == People {
		return identity.Predicates{"review:*"}
	}
	return nil
}

// allows reports whether those whose keys are certified may be allowed to attest the predicates.
// People may only attest reviews.
func (p Purpose) allows(may identity.Predicates) bool {
	return p != People || !slices.ContainsFunc(may, func(pattern string) bool {
		return !strings.HasPrefix(pattern, ledger.ReviewPrefix)
	})
}

// CheckDN returns an error if a CA of the purpose must not certify a name.
func (p Purpose) CheckDN(dn identity.DN) error {
	unit, ok := strings.CutPrefix(dn.OU, p.unitPrefix())
	switch {
	case dn.CN == "" || dn.O == "":
		return fmt.Errorf("%q is incomplete: %s need cn, ou and o (use e.g. %s)", dn, p.Holders(), p.example())
	case !ok || unit == "":
		return fmt.Errorf("%q is not a name of %s: its ou must begin with %s (use e.g. %s)", dn, p.holder(), p.unitPrefix(),
			p.example())
	}
	return dn.CheckVisible()
}

// Certified returns a name, if the CA of the purpose with a root certifies it. Otherwise it returns
// CodeForbidden, or CodeRevokedIdentity if the root is no longer trusted.
func (p Purpose) Certified(root identity.Identity, name string) (identity.DN, error) {
	if root.RevokedAt != 0 {
		return identity.DN{}, ledger.Errorf(ledger.CodeRevokedIdentity,
			"the CA %s was revoked: create another with 'ledgerd identity %s create'", root.ID, p.Name())
	}
	dn, err := identity.ParseDN(name)
	if err == nil {
		err = p.CheckDN(dn)
	}
	if err != nil {
		return dn, ledger.Errorf(ledger.CodeForbidden, "%v", err)
	}

	if root.DNPattern == "" {
		return dn, nil
	}
	pattern, err := identity.ParsePattern(root.DNPattern)
	if err == nil && !pattern.Match(dn) {
		err = ledger.Errorf(ledger.CodeForbidden, "the CA does not certify %s, only %s (change the name, or the dn_pattern "+
			"of identity %s)", dn, root.DNPattern, root.ID)
	}
	return dn, err
}
