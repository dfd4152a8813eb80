package store

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// registerPerson stores names of the signer of an identity, and that they and its key are of one
// person.
func (t *tx) registerPerson(orgID int64, identityID string, n identity.Identity, names []string) error {
	if n.Kind != identity.KeyIdentity && len(names) == 0 {
		return nil // its signers are named when they sign
	}
	dn, err := identity.ParseDN(n.DN)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: identityID}
	signerID, person, err := t.personOfIdentity(orgID, n, dn, cause)
	if err != nil {
		return err
	}
	_, err = t.nameSigner(orgID, signerID, person, dn.CN, strings.Join(names, "\n"), cause)
	return err
}

// personOfIdentity returns the signer of an identity and the person. It stores both if they are
// new, and that the key of the identity is of this person.
func (t *tx) personOfIdentity(
	orgID int64, n identity.Identity, dn identity.DN, cause ledger.Cause,
) (signerID, person int64, err error) {
	if n.Kind != identity.KeyIdentity {
		return t.personOfName(orgID, n.DN, dn)
	}
	if signerID, err = t.rowFor(nameKey{signersTable, orgID, n.DN}, dn); err != nil {
		return 0, 0, err
	}

	digest, err := n.KeyDigest()
	if err != nil {
		return 0, 0, err
	}
	keyID, err := t.rowFor(nameKey{keysTable, orgID, string(digest[:])}, dn)
	if err != nil {
		return 0, 0, err
	}
	person, _, err = t.join(orgID, signature{signerID: signerID, keyID: keyID}, cause)
	return signerID, person, err
}

// personOfName returns the signer with a DN and the person. It stores both if they are new.
func (t *tx) personOfName(orgID int64, name string, dn identity.DN) (signerID, person int64, err error) {
	if signerID, err = t.rowFor(nameKey{signersTable, orgID, name}, dn); err != nil {
		return 0, 0, err
	}
	if person, err = personOfName(t.Conn, orgID, signerID); err != nil {
		return 0, 0, fmt.Errorf("find the person of a signer: %w", err)
	}
	if person == 0 {
		person = signerID
	}
	if _, err := t.Exec("UPDATE signers SET person = ? WHERE id = ?", person, signerID); err != nil {
		return 0, 0, fmt.Errorf("note the person of a signer: %w", err)
	}
	return signerID, person, t.individualize(signerID, person)
}

// changeNames stores the e-mail addresses and logins of the signer of an identity that was changed.
// Former ones are no longer the signer's, except in what is recorded, unless they are among the names
// that all identities with the DN have. It also stores those of these that are missing.
func (t *tx) changeNames(orgID int64, before, after identity.Identity, names []string) error {
	dn, err := identity.ParseDN(after.DN)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: after.ID}
	if err := t.forgetNames(orgID, after.DN, identity.Dropped(dn, before.AuthorNames(), names), cause); err != nil {
		return err
	}
	return t.registerPerson(orgID, after.ID, after, names)
}
