package signers

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// registerPerson stores names of the signer of an identity, and that they and its key are of one
// person.
func (sg *Signers) registerPerson(t *txn.Tx, orgID int64, identityID string, n identity.Identity,
	names []string) error {
	if n.Kind != identity.KeyIdentity && len(names) == 0 {
		return nil // its signers are named when they sign
	}
	dn, err := identity.ParseDN(n.DN)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: identityID}
	signerID, person, err := sg.personOfIdentity(t, orgID, n, dn, cause)
	if err != nil {
		return err
	}
	_, err = sg.nameSigner(t, orgID, signerID, person, dn.CN, strings.Join(names, "\n"), cause)
	return err
}

// personOfIdentity returns the signer of an identity and the person. It stores both if they are
// new, and that the key of the identity is of this person.
func (sg *Signers) personOfIdentity(t *txn.Tx,
	orgID int64, n identity.Identity, dn identity.DN, cause ledger.Cause,
) (signerID, person int64, err error) {
	if n.Kind != identity.KeyIdentity {
		return sg.personOfName(t, orgID, n.DN, dn)
	}
	if signerID, err = sg.RowFor(t, NameKey{signersTable, orgID, n.DN}, dn); err != nil {
		return 0, 0, err
	}

	digest, err := n.KeyDigest()
	if err != nil {
		return 0, 0, err
	}
	keyID, err := sg.RowFor(t, NameKey{keysTable, orgID, string(digest[:])}, dn)
	if err != nil {
		return 0, 0, err
	}
	person, _, err = sg.join(t, orgID, Signature{SignerID: signerID, KeyID: keyID}, cause)
	return signerID, person, err
}

// personOfName returns the signer with a DN and the person. It stores both if they are new.
func (sg *Signers) personOfName(t *txn.Tx, orgID int64, name string, dn identity.DN) (signerID, person int64,
	err error) {
	if signerID, err = sg.RowFor(t, NameKey{signersTable, orgID, name}, dn); err != nil {
		return 0, 0, err
	}
	if person, err = PersonOfName(t.Conn, orgID, signerID); err != nil {
		return 0, 0, fmt.Errorf("find the person of a signer: %w", err)
	}
	if person == 0 {
		person = signerID
	}
	if _, err := t.Exec("UPDATE signers SET person = ? WHERE id = ?", person, signerID); err != nil {
		return 0, 0, fmt.Errorf("note the person of a signer: %w", err)
	}
	return signerID, person, individualize(t, signerID, person)
}

// changeNames stores the e-mail addresses and logins of the signer of an identity that was changed.
// Former ones are no longer the signer's, except in what is recorded, unless they are among the names
// that all identities with the DN have. It also stores those of these that are missing.
func (sg *Signers) changeNames(t *txn.Tx, orgID int64, before, after identity.Identity, names []string) error {
	dn, err := identity.ParseDN(after.DN)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: after.ID}
	if err := sg.forgetNames(t, orgID, after.DN, identity.Dropped(dn, before.AuthorNames(), names), cause); err != nil {
		return err
	}
	return sg.registerPerson(t, orgID, after.ID, after, names)
}
