package store

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

const selectLatest = `
SELECT l.commit_id, l.attestation_id, s.person, s.individual
FROM latest l /*+ordered*/ JOIN signers s ON s.id = l.signer_id
WHERE l.commit_id IN `

// gatherEvidence reads the evidence of commits: the latest attestation of each
// signer for each predicate.
func (rd reader) gatherEvidence(byID map[int64]*subject, ids []any) error {
	type latest struct {
		commit, attestation int64
		signers.Who
	}
	var list []latest
	err := rd.EachIn(func(row txn.Scanner) error {
		var l latest
		err := row.Scan(&l.commit, &l.attestation, &l.Person, &l.Individual)
		list = append(list, l)
		return err
	}, selectLatest, 1, ids)
	if err != nil {
		return err
	}

	var uncached []any
	missing := make(map[int64]place)
	mapped := rd.caches.mapped.Load()
	for i, l := range list {
		s := byID[l.commit]
		f := &s.facts
		if s.rows != nil {
			s.rows = append(s.rows, l.attestation)
		}
		if f.Evidence == nil {
			n := 1 // for evidence that is just recorded
			for n <= len(list)-i && list[i+n-1].commit == l.commit {
				n++
			}
			f.Evidence = make([]policy.Evidence, 0, n)
		}

		e, ok := rd.caches.evidence.Get(l.attestation)
		e.Person, e.Individual = l.Person, l.Individual
		f.Evidence = append(f.Evidence, e)
		if !ok || !mapped {
			uncached = append(uncached, l.attestation)
			missing[l.attestation] = place{f, len(f.Evidence) - 1}
		}
	}
	if err := rd.readEvidence(missing, uncached); err != nil {
		return err
	}
	places, rows, err := rd.removeDistrusted(byID)
	if err != nil {
		return err
	}
	return rd.readEvidence(places, rows)
}

// readEvidence reads attestations by row id, and sets the evidence at their places, except
// for who has signed.
func (rd reader) readEvidence(places map[int64]place, rows []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var id, predicateID, typeID, signerID int64
		var emails string
		var e policy.Evidence
		err := row.Scan(&id, &predicateID, &typeID, &e.Slot, &signerID, &e.Attestation, &emails, &e.Status, &e.RecordedAt,
			&e.FinishedAt, &e.WhilePromotable, &e.Passkey, &e.Reason)
		if err != nil {
			return err
		}

		if emails != "" {
			e.Emails = strings.Split(emails, "\n")
		}
		if e.Predicate, err = rd.s.Signers.Predicate(rd.Reader, predicateID); err != nil {
			return err
		}
		if e.PredicateType, err = rd.s.Signers.PredicateType(rd.Reader, typeID); err != nil {
			return err
		}
		signer, err := rd.s.Signers.Signer(rd.Reader, signerID)
		if err != nil {
			return err
		}
		e.Signer = signer.DN

		at := &places[id].facts.Evidence[places[id].index]
		e.Person, e.Individual = at.Person, at.Individual
		*at = e
		if rd.Writes {
			rd.caches.evidence.Put(id, e)
		}
		return nil
	}, `
SELECT id, predicate_id, type_id, slot, signer_id, attestation_id, emails, status,
  `+ageOf+`, finished_at, while_promotable, assertion IS NOT NULL, reason
FROM attestations a WHERE id IN `, 1, rows)
}

// isMapped reports whether all statements are mapped by the present rules. Until then, any process may change
// evidence, and what is cached of it is not used.
func (s *Store) isMapped() bool { return s.caches.mapped.Load() }

// setMapped notes that all statements are mapped by the present rules.
func (s *Store) setMapped() {
	if !s.caches.mapped.Load() {
		s.caches.evidence.Clear() // it may be that of earlier rules
		s.caches.mapped.Store(true)
	}
}
