package signers

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// WhoSigned returns who a signature is by, in the present version of the keyring. It stores that
// the signer and the key are of one person, and the signer's names: the CN, and e-mail addresses,
// one per line. changed reports whether people may have become one, individuals too, or authors of
// commits.
func (sg *Signers) WhoSigned(t *txn.Tx,
	orgID int64, key PersonKey, cn, emails string, cause ledger.Cause,
) (w Who, changed bool, err error) {
	w, ok := sg.people.Get(key)
	names := namesKey{key.SignerID, key.KeyringVersion, emails}
	if _, isNamed := sg.named.Get(names); ok && isNamed {
		return w, false, nil
	}

	person, joined, err := sg.join(t, orgID, key.Signature, cause)
	if err != nil {
		return w, false, err
	}
	named, err := sg.nameSigner(t, orgID, key.SignerID, person, cn, emails, cause)
	if err != nil {
		return w, false, err
	}
	if w, err = WhoIs(t, person); err != nil {
		return w, false, err
	}
	sg.people.Put(key, w)
	sg.named.Put(names, struct{}{})
	sg.cached = true
	return w, joined || named, nil
}

// join stores that a signer and a key are of one person, and returns the person. If they
// were two people, or the key is said to have signed a commit, the commits of the org are
// derived again, and changed is true.
func (sg *Signers) join(t *txn.Tx, orgID int64, sig Signature, cause ledger.Cause) (person int64, changed bool,
	err error) {
	var isClaimed bool
	err = t.Row("SELECT person = 0 AND claimed = 1 FROM keys WHERE id = ?", sig.KeyID).Scan(&isClaimed)
	if err != nil {
		return 0, false, fmt.Errorf("read key: %w", err)
	}

	person, other, err := JoinPeople(t.Conn, orgID, sig)
	if err != nil {
		return 0, false, fmt.Errorf("join the people of a signature: %w", err)
	}
	if err := individualize(t, sig.SignerID, person); err != nil {
		return 0, false, err
	}
	if other != 0 {
		if _, err := sg.regroup(t, orgID, 0); err != nil {
			return 0, false, err
		}
		sg.people.Clear()
		if err := keyringChanged(t, orgID); err != nil {
			return 0, false, err
		}
	}
	if other == 0 && !isClaimed {
		return person, false, nil
	}
	return person, true, sg.jobs.SettleOrg(t, orgID, cause)
}

// JoinPeople stores that a signer and a key are of one person, and returns the person. If
// they were two people, the other one does not exist any more.
func JoinPeople(c *sqldb.Conn, orgID int64, sig Signature) (person, other int64, err error) {
	signer, err := PersonOfName(c, orgID, sig.SignerID)
	if err != nil {
		return 0, 0, err
	}
	var key int64
	if err := c.Row("SELECT person FROM keys WHERE id = ?", sig.KeyID).Scan(&key); err != nil {
		return 0, 0, err
	}

	switch {
	case signer == 0 && key == 0:
		person = sig.SignerID
	case signer == 0 || key == 0:
		person = max(signer, key)
	case signer != key:
		person, other = min(signer, key), max(signer, key)
		for _, table := range []string{"signers", "keys"} {
			_, err := c.Exec("UPDATE "+table+" SET person = ? WHERE org_id = ? AND person = ?", person, orgID, other)
			if err != nil {
				return 0, 0, err
			}
		}
		return person, other, nil
	default:
		person = signer
	}

	const setPerson = " SET person = ?1 WHERE id = ?2 AND person <> ?1"
	if _, err := c.Exec("UPDATE signers"+setPerson, person, sig.SignerID); err != nil {
		return 0, 0, err
	}
	_, err = c.Exec("UPDATE keys"+setPerson, person, sig.KeyID)
	return person, 0, err
}

// PersonOfName returns the person of a signer, or of one whose DN folds to the same
// text. It returns 0 if neither has signed or was registered.
func PersonOfName(c *sqldb.Conn, orgID, signerID int64) (person int64, err error) {
	var folded string
	if err := c.Row("SELECT person, folded FROM signers WHERE id = ?", signerID).Scan(&person, &folded); err != nil {
		return 0, err
	}
	if person != 0 {
		return person, nil
	}
	return PersonOfFold(c, orgID, folded)
}

// PersonOfFold returns the person whose DN folds to the given text, or 0.
func PersonOfFold(c *sqldb.Conn, orgID int64, folded string) (person int64, err error) {
	err = c.Row("SELECT person FROM signers WHERE org_id = ? AND folded = ? AND person > 0 LIMIT 1", orgID, folded).
		Scan(&person)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return person, err
}

// PeopleLike returns the people who have the name, a DN, or the key of an attestation's signer:
// none, one, or two who would become one. It stores nothing.
func (sg *Signers) PeopleLike(t *txn.Tx,
	orgID int64, signer identity.Signer, name string, keyringVersion int64,
) (people []int64, err error) {
	signerID, err := sg.RowOf(t.Reader, NameKey{signersTable, orgID, name})
	if err != nil {
		return nil, err
	}
	keyID, err := sg.RowOf(t.Reader, NameKey{keysTable, orgID, string(signer.Key[:])})
	if err != nil {
		return nil, err
	}
	if w, ok := sg.people.Get(PersonKey{Signature{signerID, keyID}, keyringVersion}); ok {
		return []int64{w.Person}, nil
	}

	var person int64
	if signerID != 0 {
		person, err = PersonOfName(t.Conn, orgID, signerID)
	} else {
		person, err = PersonOfFold(t.Conn, orgID, signer.DN.Fold())
	}
	if err != nil {
		return nil, fmt.Errorf("find the person of a signer: %w", err)
	}
	if person != 0 {
		people = append(people, person)
	}

	if keyID != 0 {
		var keyed int64
		if err := t.Row("SELECT person FROM keys WHERE id = ?", keyID).Scan(&keyed); err != nil {
			return nil, fmt.Errorf("find the person of a key: %w", err)
		}
		if keyed != 0 && keyed != person {
			people = append(people, keyed)
		}
	}
	return people, nil
}
