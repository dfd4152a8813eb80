package facts

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// MaxRetraced is the number of attestations of a commit that are read to find what
// distrusted evidence had replaced, until the background has put the table latest right.
const MaxRetraced = 5000

// A place is an element of the evidence in facts.
type place struct {
	facts *policy.Facts
	index int
}

// removeDistrusted removes distrusted evidence from the facts of commits. It returns the
// attestations that take its place, and their places: what the same signers had said before.
// If that takes too long to find, the evidence counts as failed until the background has
// found it: it may hide a failure.
func removeDistrusted(rd txn.Reader, byID map[int64]*Commit) (places map[int64]place, rows []any, err error) {
	var ids []any
	for id, s := range byID {
		if s.Deriver.Repo.Distrusting && len(s.Facts.Evidence) > 0 {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return nil, nil, nil
	}
	distrusted, err := DistrustedLatest(rd, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read distrusted evidence: %w", err)
	}

	places = make(map[int64]place)
	for id, list := range distrusted {
		s := byID[id]
		r, complete := NewRetracing(id, list), s.Attestations < MaxRetraced
		if complete {
			if complete, err = r.Next(rd, MaxRetraced); err != nil {
				return nil, nil, fmt.Errorf("read the evidence before the distrusted: %w", err)
			}
		}
		for row, at := range s.removeDistrusted(list, r.Found, complete) {
			rows, places[row] = append(rows, row), at
		}
	}
	return places, rows, nil
}

// removeDistrusted removes distrusted evidence from the facts of a commit. It returns the
// places for the evidence that takes its place, by attestation.
func (s *Commit) removeDistrusted(
	list []DistrustedRow, found map[LatestKey]Retraced, complete bool,
) map[int64]place {
	keys := make(map[string]LatestKey, len(list))
	for _, l := range list {
		keys[l.public] = l.LatestKey
	}

	places := make(map[int64]place)
	kept := s.Facts.Evidence[:0]
	for i, e := range s.Facts.Evidence {
		key, isDistrusted := keys[e.Attestation]
		before := found[key].ID
		switch {
		case isDistrusted && !complete:
			e.Distrusted = true
		case isDistrusted && before == 0:
			continue
		case isDistrusted:
			places[before] = place{&s.Facts, len(kept)}
		}
		if s.rows != nil {
			if s.rows[len(kept)] = s.rows[i]; isDistrusted && complete {
				s.rows[len(kept)] = before
			}
		}
		kept = append(kept, e)
	}

	s.Facts.Evidence = kept
	if s.rows != nil {
		s.rows = s.rows[:len(kept)]
	}
	return places
}

// A DistrustedRow is a row of the table latest whose attestation is distrusted.
type DistrustedRow struct {
	LatestKey
	ID     int64  // of the attestation
	public string // its id
}

// DistrustedLatest reads the rows of the table latest that have distrusted evidence, by
// commit.
func DistrustedLatest(rd txn.Reader, commits []any) (map[int64][]DistrustedRow, error) {
	rows := make(map[int64][]DistrustedRow)
	return rows, rd.EachIn(func(row txn.Scanner) error {
		var l DistrustedRow
		err := row.Scan(&l.Commit, &l.Predicate, &l.Slot, &l.Signer, &l.ID, &l.public)
		rows[l.Commit] = append(rows[l.Commit], l)
		return err
	}, `
SELECT l.commit_id, l.predicate_id, l.slot, l.signer_id, a.id, a.attestation_id
FROM latest l /*+ordered*/ JOIN attestations a ON a.id = l.attestation_id
WHERE NOT (`+IsTrusted+`) AND l.commit_id IN `, 1, commits)
}

// A Retracing finds, among the attestations of a commit, the latest trusted ones for keys of
// the table latest.
type Retracing struct {
	commit int64
	Found  map[LatestKey]Retraced
	// The position in the index attestations_by_commit: attestations up to it were read.
	digest      []byte
	signer, key int64
}

// A Retraced attestation is the latest trusted one for a key. Its ID is 0 if none is trusted.
type Retraced struct {
	ID     int64
	Status ledger.Status
}

// NewRetracing returns the search for what replaces distrusted rows of a commit.
func NewRetracing(commit int64, list []DistrustedRow) *Retracing {
	r := &Retracing{commit: commit, Found: make(map[LatestKey]Retraced, len(list)), digest: []byte{}}
	for _, l := range list {
		r.Found[l.LatestKey] = Retraced{}
	}
	return r
}

// Next reads the next attestations of the commit, at most limit, and reports whether they
// were the last.
func (r *Retracing) Next(rd txn.Reader, limit int) (last bool, err error) {
	n := 0
	err = rd.Each(func(row txn.Scanner) error {
		n++
		var a Retraced
		var isTrusted bool
		key := LatestKey{Commit: r.commit}
		err := row.Scan(&a.ID, &key.Predicate, &key.Slot, &key.Signer, &a.Status, &r.digest, &r.key, &isTrusted)
		r.signer = key.Signer
		if before, sought := r.Found[key]; sought && isTrusted && a.IsLater(before) {
			r.Found[key] = a
		}
		return err
	}, `
SELECT a.id, a.predicate_id, a.slot, a.signer_id, a.status, a.payload_digest, a.key_id, `+IsTrusted+`
FROM attestations a /*+index attestations_by_commit*/
WHERE a.commit_id = ? AND (a.payload_digest, a.signer_id, a.key_id) > (?, ?, ?)
ORDER BY a.payload_digest, a.signer_id, a.key_id LIMIT ?`, r.commit, r.digest, r.signer, r.key, limit)
	return n < limit, err
}

// IsLater reports whether an attestation is the latest of two by the same signer.
func (a Retraced) IsLater(than Retraced) bool {
	return than.ID == 0 || policy.IsLater(a.Status, than.Status, a.ID > than.ID)
}

// An identity whose key was compromised is distrusted since a time: what it has made
// trusted since then counts as if it had not been recorded. It stays recorded, and nothing
// is added to it, because the identity is revoked.

// AgeOf is when an attestation a was recorded. Earlier releases have corrected it if their clock had
// been ahead.
const AgeOf = "CASE a.aged_from WHEN 0 THEN a.recorded_at ELSE a.aged_from END"

// IsTrusted is the condition that an attestation a is not distrusted.
const IsTrusted = `
NOT EXISTS (SELECT 1 FROM identities d WHERE d.identity_id = a.identity_id AND d.distrusted_since > 0
  AND d.distrusted_since <= ` + AgeOf + ")"

// MarkDistrusted sets which of a repo's attestations are distrusted.
func MarkDistrusted(rd txn.Reader, r txn.Repo, list []txn.Keyed[ledger.AttestationRecord]) error {
	if r.Distrusts == 0 {
		return nil
	}
	rows := make([]any, len(list))
	places := make(map[int64]int, len(list))
	for i, a := range list {
		rows[i], places[a.ID] = a.ID, i
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		id, err := txn.ScanID(row)
		list[places[id]].Row.Distrusted = true
		return err
	}, "SELECT a.id FROM attestations a WHERE NOT ("+IsTrusted+") AND a.id IN ", 1, rows)
	if err != nil {
		return fmt.Errorf("find distrusted attestations: %w", err)
	}
	return nil
}

// ReplaceLatest puts the attestation by in the place of a distrusted row of the table latest, or nothing if it is 0,
// unless the row has changed. It does the same in the tree of the commit.
func ReplaceLatest(t *txn.Tx, r DistrustedRow, by int64) error {
	const isRow = " WHERE commit_id = ? AND predicate_id = ? AND slot = ? AND signer_id = ? AND attestation_id = ?"
	key := []any{r.Commit, r.Predicate, r.Slot, r.Signer, r.ID}
	var err error
	if by == 0 {
		_, err = t.Exec("DELETE FROM latest"+isRow, key...)
	} else {
		_, err = t.Exec("UPDATE latest SET attestation_id = ?"+isRow, append([]any{by}, key...)...)
	}
	if err != nil {
		return err
	}

	var tree int64
	if err := t.Row("SELECT tree_id FROM commits WHERE id = ?", r.Commit).Scan(&tree); err != nil || tree == 0 {
		return err
	}
	return RecountTree(t, tree, r.LatestKey)
}
