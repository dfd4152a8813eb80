package facts

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

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
