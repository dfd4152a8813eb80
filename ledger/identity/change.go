package identity

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A Change is the body of a request to change an identity. Nil fields are not changed.
type Change struct {
	// May replaces the patterns. An empty list allows every predicate; a SigstoreIdentity needs patterns.
	May *Predicates `json:"may,omitzero"`
	// DNPattern is allowed only for a root. If it is empty, the root certifies every DN.
	DNPattern *string `json:"dn_pattern,omitzero"`
	// Email is allowed only for a key. It replaces the first address. If it is empty, and no
	// other is left, that of the certificate is used.
	Email *string `json:"email,omitzero"`
	// Emails replaces all addresses of a key.
	Emails *[]string `json:"emails,omitzero"`
	// Logins replaces all logins. It is not allowed for a root.
	Logins *[]string `json:"logins,omitzero"`
	// Distinct replaces whether the signer is another person than others with the same names. It is
	// not allowed for a root.
	Distinct *bool `json:"distinct,omitzero"`
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
	if c.Logins != nil {
		if i.Logins, err = checkedLogins(i.Kind == RootIdentity, *c.Logins); err != nil {
			return i, err
		}
	}
	if c.Distinct != nil {
		if i.Kind == RootIdentity {
			return i, ledger.FieldErrorf(ledger.CodeInvalidField, "distinct",
				"not allowed for a root, which certifies many signers (members have distinct, too)")
		}
		i.Distinct = *c.Distinct
	}
	return i.withEmails(c)
}

// withEmails returns the identity with the e-mail addresses of a change.
func (i Identity) withEmails(c Change) (Identity, error) {
	var email string
	var emails []string
	switch {
	case c.Emails != nil:
		emails = *c.Emails
		if c.Email != nil {
			email = *c.Email
		}
	case c.Email == nil:
		return i, nil
	default:
		email = *c.Email
		if len(i.Emails) > 1 {
			emails = slices.DeleteFunc(slices.Clone(i.Emails[1:]), func(other string) bool { return other == email })
		}
		if email != "" && len(emails) > 0 {
			emails = slices.Insert(emails, 0, email)
		}
	}

	var m material
	var err error
	if i.Kind != SigstoreIdentity {
		if m, err = parseMaterial(i.PEM); err != nil {
			return i, err
		}
	}
	i.Email, i.Emails, err = checkedEmails(i.Kind, email, emails, m.cert)
	return i, err
}
