package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// gatherVerdicts reads what the expressions of the contracts say of the evidence of
// commits. It must have been gathered.
func (rd reader) gatherVerdicts(list []*subject) error {
	ids := make(map[string]int64) // of expressions; 0 if not stored
	verdicts := make(map[verdictKey]policy.Verdict)
	needed := make([][]unevaluated, len(list))
	var missing []any
	for i, s := range list {
		needed[i] = s.needed()
		for _, u := range needed[i] {
			key, err := rd.verdictKey(&u, ids)
			if err != nil {
				return err
			}
			if v, ok := rd.caches.verdicts.Get(key); ok {
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
		rd.caches.verdicts.Put(key, v)
		return err
	}, "SELECT attestation_id, expression_id, verdict, error FROM verdicts WHERE (attestation_id, expression_id) IN ",
		2, missing)
	if err != nil {
		return err
	}

	for i, s := range list {
		for _, u := range needed[i] {
			if v, ok := verdicts[verdictKey{u.row, ids[u.expression]}]; ok {
				s.setVerdict(u.attestation, u.expression, v)
			} else {
				s.unevaluated = append(s.unevaluated, u)
			}
		}
	}
	return nil
}

// needed returns which expressions the contract needs evaluated on the gathered evidence.
func (s *subject) needed() (list []unevaluated) {
	type topic struct{ predicate, predicateType string }
	expressions := make(map[topic][]string)
	note := func(e *policy.Evidence, row int64) {
		about := topic{e.Predicate, e.PredicateType}
		if _, ok := expressions[about]; !ok {
			expressions[about] = s.d.contract.Expressions(e)
		}
		for _, x := range expressions[about] {
			list = append(list, unevaluated{row, e.Attestation, x})
		}
	}

	for i := range s.facts.Evidence {
		note(&s.facts.Evidence[i], s.rows[i])
	}
	for i := range s.facts.Carried {
		note(&s.facts.Carried[i], s.carriedRows[i])
	}
	return list
}

func (s *subject) setVerdict(attestation, expression string, v policy.Verdict) {
	if s.facts.Verdicts == nil {
		s.facts.Verdicts = make(policy.Verdicts)
	}
	s.facts.Verdicts.Add(expression, attestation, v)
}

// verdictKey returns the key of u, and notes the id of its expression in ids.
func (rd reader) verdictKey(u *unevaluated, ids map[string]int64) (verdictKey, error) {
	id, ok := ids[u.expression]
	if !ok {
		var err error
		if id, err = rd.expressionID(u.expression); err != nil {
			return verdictKey{}, err
		}
		ids[u.expression] = id
	}
	return verdictKey{u.row, id}, nil
}

// expressionID returns the row id of an expression, or 0 if it is not stored.
func (rd reader) expressionID(expression string) (int64, error) {
	if id, ok := rd.caches.expressions.Get(expression); ok {
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
	rd.caches.expressions.Put(expression, id)
	return id, nil
}

// insertExpression inserts an expression, unless a write of another org, in another process, has just
// done so.
const insertExpression = `
INSERT INTO expressions (text) VALUES (?) ON CONFLICT (text) DO UPDATE SET text = excluded.text`

// addVerdict buffers what an expression says of an attestation. It is a no-op if that is
// already stored.
func (t *tx) addVerdict(row int64, expression string, v policy.Verdict) error {
	id, err := t.expressionID(expression)
	if err != nil {
		return err
	}
	if id == 0 {
		if id, err = t.Insert(insertExpression, expression); err != nil {
			return fmt.Errorf("insert expression: %w", err)
		}
		t.caches.expressions.Put(expression, id)
	}
	t.gathered.cached = true
	t.batch.rows.verdicts.Add(row, id, v.True, v.Error)
	return nil
}
