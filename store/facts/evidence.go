package facts

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Latest is the latest attestation of a signer for a predicate of a commit, by row ids.
type Latest struct {
	commit, attestation int64
	signers.Who
}

// AskLatest asks for the latest attestations of commits, and returns the function that takes the answer.
func AskLatest(rd txn.Reader, ids ...any) func() ([]Latest, error) {
	each := rd.AskIn(`
SELECT l.commit_id, l.attestation_id, s.person, s.individual
FROM latest l /*+ordered*/ JOIN signers s ON s.id = l.signer_id
WHERE l.commit_id IN `, 1, ids)
	return func() ([]Latest, error) {
		return sqldb.ScanAll(each, func(row txn.Scanner) (l Latest, err error) {
			return l, row.Scan(&l.commit, &l.attestation, &l.Person, &l.Individual)
		})
	}
}

// gatherEvidence reads the evidence of commits: the latest attestation of each
// signer for each predicate, which latest returns.
func (fa *Facts) gatherEvidence(rd txn.Reader, byID map[int64]*Commit, latest func() ([]Latest, error)) error {
	list, err := latest()
	if err != nil {
		return err
	}

	var uncached []any
	missing := make(map[int64]place)
	mapped := fa.mapped.Load()
	for i, l := range list {
		s := byID[l.commit]
		f := &s.Facts
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

		e, ok := fa.evidence.Get(l.attestation)
		e.Person, e.Individual = l.Person, l.Individual
		f.Evidence = append(f.Evidence, e)
		if !ok || !mapped {
			uncached = append(uncached, l.attestation)
			missing[l.attestation] = place{f, len(f.Evidence) - 1}
		}
	}
	if err := fa.readEvidence(rd, missing, uncached); err != nil {
		return err
	}
	places, rows, err := removeDistrusted(rd, byID)
	if err != nil {
		return err
	}
	return fa.readEvidence(rd, places, rows)
}

// readEvidence reads attestations by row id, and sets the evidence at their places, except
// for who has signed.
func (fa *Facts) readEvidence(rd txn.Reader, places map[int64]place, rows []any) error {
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
		if e.Predicate, err = fa.signers.Predicate(rd, predicateID); err != nil {
			return err
		}
		if e.PredicateType, err = fa.signers.PredicateType(rd, typeID); err != nil {
			return err
		}
		signer, err := fa.signers.Signer(rd, signerID)
		if err != nil {
			return err
		}
		e.Signer = signer.DN

		at := &places[id].facts.Evidence[places[id].index]
		e.Person, e.Individual = at.Person, at.Individual
		*at = e
		if rd.Writes {
			fa.evidence.Put(id, e)
		}
		return nil
	}, `
SELECT id, predicate_id, type_id, slot, signer_id, attestation_id, emails, status,
  `+AgeOf+`, finished_at, while_promotable, assertion IS NOT NULL, reason
FROM attestations a WHERE id IN `, 1, rows)
}

// IsMapped reports whether all statements are mapped by the present rules. Until then, any process may change
// evidence, and what is cached of it is not used.
func (fa *Facts) IsMapped() bool { return fa.mapped.Load() }

// setMapped notes whether all statements are mapped by the present rules.
func (fa *Facts) setMapped(isMapped bool) {
	if isMapped && !fa.mapped.Load() {
		fa.evidence.Clear() // it may be that of earlier rules
	}
	fa.mapped.Store(isMapped)
}
