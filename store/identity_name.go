package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// registerPerson stores the names of the signer of a new identity, and that they and its key
// are of one person.
func (t *tx) registerPerson(orgID int64, identityID string, n identity.Identity) error {
	names := n.AuthorNames()
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
	if signerID, err = t.rowFor(nameKey{signersTable, orgID, n.DN}, dn); err != nil {
		return 0, 0, err
	}
	if n.Kind != identity.KeyIdentity {
		if person, err = personOfName(t.Conn, orgID, signerID); err != nil {
			return 0, 0, fmt.Errorf("find the person of a signer: %w", err)
		}
		if person == 0 {
			person = signerID
		}
		_, err = t.Exec("UPDATE signers SET person = ? WHERE id = ?", person, signerID)
		return signerID, person, err
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

// changeNames stores other e-mail addresses and logins of an identity's signer. Former ones are
// no longer the signer's, except in what is recorded.
func (t *tx) changeNames(orgID int64, before, after identity.Identity) error {
	names := after.AuthorNames()
	if slices.Equal(before.AuthorNames(), names) {
		return nil
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: after.ID}
	id, err := t.rowOf(nameKey{signersTable, orgID, after.DN})
	if err != nil {
		return err
	}
	for _, name := range before.AuthorNames() {
		if slices.Contains(names, name) {
			continue
		}
		if err := t.forgetName(orgID, id, name, cause); err != nil {
			return err
		}
	}
	return t.registerPerson(orgID, after.ID, after)
}
