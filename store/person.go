package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// whoSigned returns who a signature is by, in the present version of the keyring. It stores that
// the signer and the key are of one person, and the signer's names: the CN, and e-mail addresses,
// one per line. changed reports whether people may have become one, individuals too, or authors of
// commits.
func (t *tx) whoSigned(
	orgID int64, key personKey, cn, emails string, cause ledger.Cause,
) (w who, changed bool, err error) {
	w, ok := t.caches.people.Get(key)
	names := namesKey{key.signerID, key.keyringVersion, emails}
	if _, isNamed := t.caches.named.Get(names); ok && isNamed {
		return w, false, nil
	}

	person, joined, err := t.join(orgID, key.signature, cause)
	if err != nil {
		return w, false, err
	}
	named, err := t.nameSigner(orgID, key.signerID, person, cn, emails, cause)
	if err != nil {
		return w, false, err
	}
	if w, err = t.whoIs(person); err != nil {
		return w, false, err
	}
	t.caches.people.Put(key, w)
	t.caches.named.Put(names, struct{}{})
	t.gathered.cached = true
	return w, joined || named, nil
}

// join stores that a signer and a key are of one person, and returns the person. If they
// were two people, or the key is said to have signed a commit, the commits of the org are
// derived again, and changed is true.
func (t *tx) join(orgID int64, sig signature, cause ledger.Cause) (person int64, changed bool, err error) {
	var isClaimed bool
	err = t.Row("SELECT person = 0 AND claimed = 1 FROM keys WHERE id = ?", sig.keyID).Scan(&isClaimed)
	if err != nil {
		return 0, false, fmt.Errorf("read key: %w", err)
	}

	person, other, err := joinPeople(t.Conn, orgID, sig)
	if err != nil {
		return 0, false, fmt.Errorf("join the people of a signature: %w", err)
	}
	if err := t.individualize(sig.signerID, person); err != nil {
		return 0, false, err
	}
	if other != 0 {
		if _, err := t.regroup(orgID, 0); err != nil {
			return 0, false, err
		}
		t.caches.people.Clear()
		if err := t.keyringChanged(orgID); err != nil {
			return 0, false, err
		}
	}
	if other == 0 && !isClaimed {
		return person, false, nil
	}
	return person, true, t.s.jobs.SettleOrg(t.kernel, orgID, cause)
}

// joinPeople stores that a signer and a key are of one person, and returns the person. If
// they were two people, the other one does not exist any more.
func joinPeople(c *sqldb.Conn, orgID int64, sig signature) (person, other int64, err error) {
	signer, err := personOfName(c, orgID, sig.signerID)
	if err != nil {
		return 0, 0, err
	}
	var key int64
	if err := c.Row("SELECT person FROM keys WHERE id = ?", sig.keyID).Scan(&key); err != nil {
		return 0, 0, err
	}

	switch {
	case signer == 0 && key == 0:
		person = sig.signerID
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
	if _, err := c.Exec("UPDATE signers"+setPerson, person, sig.signerID); err != nil {
		return 0, 0, err
	}
	_, err = c.Exec("UPDATE keys"+setPerson, person, sig.keyID)
	return person, 0, err
}

// personOfName returns the person of a signer, or of one whose DN folds to the same
// text. It returns 0 if neither has signed or was registered.
func personOfName(c *sqldb.Conn, orgID, signerID int64) (person int64, err error) {
	var folded string
	if err := c.Row("SELECT person, folded FROM signers WHERE id = ?", signerID).Scan(&person, &folded); err != nil {
		return 0, err
	}
	if person != 0 {
		return person, nil
	}
	return personOfFold(c, orgID, folded)
}

// personOfFold returns the person whose DN folds to the given text, or 0.
func personOfFold(c *sqldb.Conn, orgID int64, folded string) (person int64, err error) {
	err = c.Row("SELECT person FROM signers WHERE org_id = ? AND folded = ? AND person > 0 LIMIT 1", orgID, folded).
		Scan(&person)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return person, err
}

// peopleLike returns the people who have the name or the key of an attestation's signer:
// none, one, or two who would become one. It stores nothing.
func (t *tx) peopleLike(orgID int64, r *recording) (people []int64, err error) {
	signer := r.attestation.Signer
	signerID, err := t.rowOf(nameKey{signersTable, orgID, r.identity})
	if err != nil {
		return nil, err
	}
	keyID, err := t.rowOf(nameKey{keysTable, orgID, string(signer.Key[:])})
	if err != nil {
		return nil, err
	}
	if w, ok := t.caches.people.Get(personKey{signature{signerID, keyID}, r.keyringVersion}); ok {
		return []int64{w.person}, nil
	}

	var person int64
	if signerID != 0 {
		person, err = personOfName(t.Conn, orgID, signerID)
	} else {
		person, err = personOfFold(t.Conn, orgID, signer.DN.Fold())
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
