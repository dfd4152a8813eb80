package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxRetraced is the number of attestations of a commit that are read to find what
// distrusted evidence had replaced, until the background has put the table latest right.
const maxRetraced = 5000

// A place is an element of the evidence in facts.
type place struct {
	facts *policy.Facts
	index int
}

// removeDistrusted removes distrusted evidence from the facts of commits. It returns the
// attestations that take its place, and their places: what the same signers had said before.
// If that takes too long to find, the evidence counts as failed until the background has
// found it: it may hide a failure.
func (rd reader) removeDistrusted(byID map[int64]*subject) (places map[int64]place, rows []any, err error) {
	var ids []any
	for id, s := range byID {
		if s.d.repo.Distrusting && len(s.facts.Evidence) > 0 {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return nil, nil, nil
	}
	distrusted, err := rd.distrustedLatest(ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read distrusted evidence: %w", err)
	}

	places = make(map[int64]place)
	for id, list := range distrusted {
		s := byID[id]
		r, complete := newRetracing(id, list), s.attestations < maxRetraced
		if complete {
			if complete, err = r.next(rd, maxRetraced); err != nil {
				return nil, nil, fmt.Errorf("read the evidence before the distrusted: %w", err)
			}
		}
		for row, at := range s.removeDistrusted(list, r.found, complete) {
			rows, places[row] = append(rows, row), at
		}
	}
	return places, rows, nil
}

// removeDistrusted removes distrusted evidence from the facts of a commit. It returns the
// places for the evidence that takes its place, by attestation.
func (s *subject) removeDistrusted(
	list []distrustedRow, found map[latestKey]retraced, complete bool,
) map[int64]place {
	keys := make(map[string]latestKey, len(list))
	for _, l := range list {
		keys[l.public] = l.latestKey
	}

	places := make(map[int64]place)
	kept := s.facts.Evidence[:0]
	for i, e := range s.facts.Evidence {
		key, isDistrusted := keys[e.Attestation]
		before := found[key].id
		switch {
		case isDistrusted && !complete:
			e.Distrusted = true
		case isDistrusted && before == 0:
			continue
		case isDistrusted:
			places[before] = place{&s.facts, len(kept)}
		}
		if s.rows != nil {
			if s.rows[len(kept)] = s.rows[i]; isDistrusted && complete {
				s.rows[len(kept)] = before
			}
		}
		kept = append(kept, e)
	}

	s.facts.Evidence = kept
	if s.rows != nil {
		s.rows = s.rows[:len(kept)]
	}
	return places
}

// A distrustedRow is a row of the table latest whose attestation is distrusted.
type distrustedRow struct {
	latestKey
	id     int64  // of the attestation
	public string // its id
}

// distrustedLatest reads the rows of the table latest that have distrusted evidence, by
// commit.
func (rd reader) distrustedLatest(commits []any) (map[int64][]distrustedRow, error) {
	rows := make(map[int64][]distrustedRow)
	return rows, rd.EachIn(func(row txn.Scanner) error {
		var l distrustedRow
		err := row.Scan(&l.commit, &l.predicate, &l.slot, &l.signer, &l.id, &l.public)
		rows[l.commit] = append(rows[l.commit], l)
		return err
	}, `
SELECT l.commit_id, l.predicate_id, l.slot, l.signer_id, a.id, a.attestation_id
FROM latest l /*+ordered*/ JOIN attestations a ON a.id = l.attestation_id
WHERE NOT (`+isTrusted+`) AND l.commit_id IN `, 1, commits)
}

// A retracing finds, among the attestations of a commit, the latest trusted ones for keys of
// the table latest.
type retracing struct {
	commit int64
	found  map[latestKey]retraced
	// The position in the index attestations_by_commit: attestations up to it were read.
	digest      []byte
	signer, key int64
}

// A retraced attestation is the latest trusted one for a key. Its id is 0 if there is none.
type retraced struct {
	id     int64
	status ledger.Status
}

func newRetracing(commit int64, list []distrustedRow) *retracing {
	r := &retracing{commit: commit, found: make(map[latestKey]retraced, len(list)), digest: []byte{}}
	for _, l := range list {
		r.found[l.latestKey] = retraced{}
	}
	return r
}

// next reads the next attestations of the commit, at most limit, and reports whether they
// were the last.
func (r *retracing) next(rd reader, limit int) (last bool, err error) {
	n := 0
	err = rd.Each(func(row txn.Scanner) error {
		n++
		var a retraced
		var isTrusted bool
		key := latestKey{commit: r.commit}
		err := row.Scan(&a.id, &key.predicate, &key.slot, &key.signer, &a.status, &r.digest, &r.key, &isTrusted)
		r.signer = key.signer
		if before, sought := r.found[key]; sought && isTrusted && a.isLater(before) {
			r.found[key] = a
		}
		return err
	}, `
SELECT a.id, a.predicate_id, a.slot, a.signer_id, a.status, a.payload_digest, a.key_id, `+isTrusted+`
FROM attestations a /*+index attestations_by_commit*/
WHERE a.commit_id = ? AND (a.payload_digest, a.signer_id, a.key_id) > (?, ?, ?)
ORDER BY a.payload_digest, a.signer_id, a.key_id LIMIT ?`, r.commit, r.digest, r.signer, r.key, limit)
	return n < limit, err
}

// isLater reports whether an attestation is the latest of two by the same signer.
func (a retraced) isLater(than retraced) bool {
	return than.id == 0 || policy.IsLater(a.status, than.status, a.id > than.id)
}
