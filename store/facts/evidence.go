package facts

import (
	"database/sql"
	"errors"
	"fmt"
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

// AskLatest asks for the latest attestations of commits.
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
			&e.FinishedAt, &e.WhilePromotable, &e.Passkey, &e.Reason, &e.Base)
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
			fa.keepEvidence(id, e)
		}
		return nil
	}, `
SELECT id, predicate_id, type_id, slot, signer_id, attestation_id, emails, status,
  `+AgeOf+`, finished_at, while_promotable, assertion IS NOT NULL, reason, base
FROM attestations a WHERE id IN `, 1, rows)
}

// keepEvidence caches evidence, without the paths of change records, which may be large.
func (fa *Facts) keepEvidence(id int64, e policy.Evidence) {
	e.Paths = nil
	fa.evidence.Put(id, e)
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

// gatherVerdicts reads what the expressions of the contracts say of the evidence of
// commits. It must have been gathered.
func (fa *Facts) gatherVerdicts(rd txn.Reader, list []*Commit) error {
	ids := make(map[string]int64) // of expressions; 0 if not stored
	verdicts := make(map[verdictKey]policy.Verdict)
	needed := make([][]Unevaluated, len(list))
	var missing []any
	for i, s := range list {
		needed[i] = s.needed()
		for _, u := range needed[i] {
			key, err := fa.verdictKey(rd, &u, ids)
			if err != nil {
				return err
			}
			if v, ok := fa.verdicts.Get(key); ok {
				verdicts[key] = v
			} else if key.expression != 0 {
				missing = append(missing, key.attestation, key.expression)
			}
		}
	}

	err := rd.EachIn(func(row txn.Scanner) error {
		var key verdictKey
		var v policy.Verdict
		err := row.Scan(&key.attestation, &key.expression, &v.True, &v.Error)
		verdicts[key] = v
		fa.verdicts.Put(key, v)
		return err
	}, "SELECT attestation_id, expression_id, verdict, error FROM verdicts WHERE (attestation_id, expression_id) IN ",
		2, missing)
	if err != nil {
		return err
	}

	for i, s := range list {
		for _, u := range needed[i] {
			if v, ok := verdicts[verdictKey{u.Row, ids[u.Expression]}]; ok {
				s.SetVerdict(u.Attestation, u.Expression, v)
			} else {
				s.Unevaluated = append(s.Unevaluated, u)
			}
		}
	}
	return nil
}

// needed returns which expressions the contract needs evaluated on the gathered evidence.
func (s *Commit) needed() (list []Unevaluated) {
	type topic struct{ predicate, predicateType string }
	expressions := make(map[topic][]string)
	note := func(e *policy.Evidence, row int64) {
		about := topic{e.Predicate, e.PredicateType}
		if _, ok := expressions[about]; !ok {
			expressions[about] = s.Deriver.Contract.Expressions(e)
		}
		for _, x := range expressions[about] {
			list = append(list, Unevaluated{row, e.Attestation, x})
		}
	}

	for i := range s.Facts.Evidence {
		note(&s.Facts.Evidence[i], s.rows[i])
	}
	for i := range s.Facts.Carried {
		note(&s.Facts.Carried[i], s.carriedRows[i])
	}
	return list
}

// SetVerdict adds what an expression says of an attestation to the facts.
func (s *Commit) SetVerdict(attestation, expression string, v policy.Verdict) {
	if s.Facts.Verdicts == nil {
		s.Facts.Verdicts = make(policy.Verdicts)
	}
	s.Facts.Verdicts.Add(expression, attestation, v)
}

// verdictKey returns the key of u, and notes the id of its expression in ids.
func (fa *Facts) verdictKey(rd txn.Reader, u *Unevaluated, ids map[string]int64) (verdictKey, error) {
	id, ok := ids[u.Expression]
	if !ok {
		var err error
		if id, err = fa.expressionID(rd, u.Expression); err != nil {
			return verdictKey{}, err
		}
		ids[u.Expression] = id
	}
	return verdictKey{u.Row, id}, nil
}

// expressionID returns the row id of an expression, or 0 if it is not stored.
func (fa *Facts) expressionID(rd txn.Reader, expression string) (int64, error) {
	if id, ok := fa.expressions.Get(expression); ok {
		return id, nil
	}
	var id int64
	err := rd.Row("SELECT id FROM expressions WHERE text = ?", expression).Scan(&id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("find expression: %w", err)
	}
	fa.expressions.Put(expression, id)
	return id, nil
}

// insertExpression inserts an expression, unless a write of another org, in another process, has just
// done so.
const insertExpression = `
INSERT INTO expressions (text) VALUES (?) ON CONFLICT (text) DO UPDATE SET text = excluded.text`

// AddVerdict buffers what an expression says of an attestation. It is a no-op if that is
// already stored.
func (fa *Facts) AddVerdict(t *txn.Tx, row int64, expression string, v policy.Verdict) error {
	id, err := fa.expressionID(t.Reader, expression)
	if err != nil {
		return err
	}
	if id == 0 {
		if id, err = t.Insert(insertExpression, expression); err != nil {
			return fmt.Errorf("insert expression: %w", err)
		}
		fa.expressions.Put(expression, id)
	}
	fa.cached = true
	fa.rows.verdicts.Add(row, id, v.True, v.Error)
	return nil
}
