package facts

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// GatherAuthors reads who is known to have written commits: the people who have signed
// them, and those who have any identity with the name of an author. It also notes which of the
// names and keys are known.
func GatherAuthors(rd txn.Reader, list []*Commit) error {
	names, keys := make(map[authorKey][]*Commit), make(map[authorKey][]*Commit)
	var nameArgs, keyArgs []any
	for _, s := range list {
		s.Facts.AuthorPeople, s.Facts.KnownAuthors = nil, nil
		if !s.Deriver.Contract.ExcludesAuthor() {
			continue
		}
		org := s.Deriver.Repo.OrgID
		for _, name := range identity.AuthorNames(s.Facts.Authors) {
			key := authorKey{org, name}
			if names[key] == nil {
				nameArgs = append(nameArgs, org, name)
			}
			names[key] = append(names[key], s)
		}
		for _, fingerprint := range s.Claims.Keys() {
			digest, err := hex.DecodeString(fingerprint)
			if err != nil {
				return fmt.Errorf("decode the fingerprint of a key: %w", err)
			}
			key := authorKey{org, string(digest)}
			if keys[key] == nil {
				keyArgs = append(keyArgs, org, digest)
			}
			keys[key] = append(keys[key], s)
		}
	}

	if err := addPeople(rd, names, asText, nameArgs, selectNamed); err != nil {
		return fmt.Errorf("read people by name: %w", err)
	}
	if err := addPeople(rd, keys, hex.EncodeToString, keyArgs, selectKeyed); err != nil {
		return fmt.Errorf("read people by key: %w", err)
	}
	for _, s := range list { // a person may have several names
		slices.Sort(s.Facts.AuthorPeople)
		s.Facts.AuthorPeople = slices.Compact(s.Facts.AuthorPeople)
		slices.Sort(s.Facts.KnownAuthors)
		s.Facts.KnownAuthors = slices.Compact(s.Facts.KnownAuthors)
	}
	return nil
}

// Queries for individuals by their names and by their keys.
const (
	selectNamed = `
SELECT n.org_id, n.name, s.individual
FROM signer_names n /*+ordered*/ JOIN signers s ON s.id = n.signer_id WHERE s.person > 0 AND (n.org_id, n.name) IN `
	selectKeyed = `
SELECT k.org_id, k.digest, s.individual
FROM keys k /*+ordered*/ JOIN signers s ON s.id = k.person WHERE k.person > 0 AND (k.org_id, k.digest) IN `
)

// An authorKey is a name, or the digest of a key, in an org.
type authorKey struct {
	org  int64
	name string
}

func asText(name []byte) string { return string(name) }

// addPeople adds the people that a query returns to the commits with their names or keys, and the names or keys
// themselves as facts have them.
func addPeople(rd txn.Reader,
	commits map[authorKey][]*Commit, text func([]byte) string, args []any, query string,
) error {
	return rd.EachIn(func(row txn.Scanner) error {
		key, name, person := authorKey{}, []byte{}, int64(0) // the name may be a digest
		if err := row.Scan(&key.org, &name, &person); err != nil {
			return err
		}
		key.name = string(name)
		for _, s := range commits[key] {
			s.Facts.AuthorPeople = append(s.Facts.AuthorPeople, person)
			s.Facts.KnownAuthors = append(s.Facts.KnownAuthors, text(name))
		}
		return nil
	}, query, 2, args)
}
