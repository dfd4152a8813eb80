package signers

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// WhoIs returns the individual of a person, who exists.
func WhoIs(t *txn.Tx, person int64) (Who, error) {
	w := Who{Person: person}
	if err := t.Row("SELECT individual FROM signers WHERE id = ?", person).Scan(&w.Individual); err != nil {
		return w, fmt.Errorf("read the individual of a person: %w", err)
	}
	return w, nil
}

// individualize gives a signer of a person the person's individual, unless it has one. A new person
// is an individual alone.
func individualize(t *txn.Tx, signerID, person int64) error {
	const set = `
UPDATE signers SET individual = CASE id WHEN ?1 THEN id ELSE (SELECT p.individual FROM signers p WHERE p.id = ?1) END
WHERE id = ?2 AND individual = 0`
	if _, err := t.Exec(set, person, signerID); err != nil {
		return fmt.Errorf("note the individual of a signer: %w", err)
	}
	return nil
}

// regroup finds out again which people of an org are one individual, after their names or whom an
// administrator takes for distinct have changed. It reports whether anybody's has changed, apart
// from a new signer's, who has signed nothing yet.
func (sg *Signers) regroup(t *txn.Tx, orgID, newSigner int64) (changed bool, err error) {
	type row struct {
		id, individual int64
		identity.NamedSigner
	}
	signers, err := txn.All(t.Reader, func(s txn.Scanner) (r row, err error) {
		return r, s.Scan(&r.id, &r.Person, &r.individual, &r.Distinct)
	}, "SELECT id, person, individual, distinct_by > 0 FROM signers WHERE org_id = ? AND person > 0", orgID)
	if err != nil {
		return false, fmt.Errorf("read the signers of an org: %w", err)
	}
	named := make([]identity.NamedSigner, len(signers))
	places := make(map[int64]*identity.NamedSigner, len(signers))
	for i := range signers {
		named[i] = signers[i].NamedSigner
		places[signers[i].id] = &named[i]
	}
	err = t.Each(func(s txn.Scanner) error {
		var id int64
		var name string
		err := s.Scan(&id, &name)
		if place := places[id]; place != nil {
			place.Names = append(place.Names, name)
		}
		return err
	}, "SELECT signer_id, name FROM signer_names WHERE org_id = ?", orgID)
	if err != nil {
		return false, fmt.Errorf("read the names of an org: %w", err)
	}

	individuals := identity.Individuals(named)
	for _, s := range signers {
		individual := individuals[s.Person]
		if individual == s.individual {
			continue
		}
		if _, err := t.Exec("UPDATE signers SET individual = ? WHERE id = ?", individual, s.id); err != nil {
			return false, fmt.Errorf("note the individual of a signer: %w", err)
		}
		changed = changed || s.id != newSigner
	}
	if !changed {
		return false, nil
	}
	sg.people.Clear()
	return true, keyringChanged(t, orgID)
}

// sharesName reports whether another person of an org has one of the names.
func sharesName(t *txn.Tx, orgID, person int64, names []string) (shares bool, err error) {
	for _, name := range names {
		err = t.Row(`
SELECT EXISTS (SELECT 1 FROM signer_names n /*+ordered*/ JOIN signers s ON s.id = n.signer_id
  WHERE n.org_id = ? AND n.name = ? AND s.person NOT IN (0, ?))`, orgID, name, person).Scan(&shares)
		if err != nil {
			return false, fmt.Errorf("look for others with a name: %w", err)
		}
		if shares {
			return true, nil
		}
	}
	return false, nil
}

// keyringChanged notes that the identities of an org have changed.
func keyringChanged(t *txn.Tx, orgID int64) error {
	_, err := t.Exec("UPDATE orgs SET keyring_version = keyring_version + 1 WHERE id = ?", orgID)
	return err
}
