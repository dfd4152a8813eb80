package identity

import (
	"github.com/ledgerd/ledgerd/ledger"
)

// A Change is the body of a request to change an identity. Nil fields are not changed.
type Change struct {
	// May replaces the patterns. An empty list allows every predicate; a SigstoreIdentity needs patterns.
	May *Predicates `json:"may,omitzero"`
	// DNPattern is allowed only for a root. If it is empty, the root certifies every DN.
	DNPattern *string `json:"dn_pattern,omitzero"`
	// Email is allowed only for a key. If it is empty, that of the certificate is used.
	Email *string `json:"email,omitzero"`
}

// Changed validates a change and returns the identity with it. A revoked identity cannot
// be changed.
func (i Identity) Changed(c Change) (Identity, error) {
	if i.RevokedAt != 0 {
		return i, ledger.Errorf(ledger.CodeRevokedIdentity,
			"identity %s is revoked: it attests nothing, so it cannot be changed (add the key again to trust it)", i.ID)
	}

	var err error
	if c.May != nil {
		if i.Kind == SigstoreIdentity && len(*c.May) == 0 {
			return i, errKeylessMay()
		}
		if i.May, err = c.May.checked(); err != nil {
			return i, err
		}
	}
	if c.DNPattern != nil {
		if i.DNPattern, err = checkedPattern(i.Kind, *c.DNPattern); err != nil {
			return i, err
		}
	}
	if c.Email == nil {
		return i, nil
	}
	if i.Kind == SigstoreIdentity {
		_, err = checkedEmail(i.Kind, *c.Email, nil)
		return i, err
	}
	m, err := parseMaterial(i.PEM)
	if err != nil {
		return i, err
	}
	i.Email, err = checkedEmail(i.Kind, *c.Email, m.cert)
	return i, err
}
