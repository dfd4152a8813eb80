package attestation

import (
	"cmp"

	"github.com/ledgerd/ledgerd/ledger"
)

// A statement is the content of an in-toto statement about a commit.
type statement struct {
	commit        string
	predicateType string
	repo          string // the repo that it is for, if it says so
	outcome       Outcome
}

// parseStatement parses an in-toto statement about a commit.
func parseStatement(payload []byte) (statement, error) {
	doc, err := decodeDocument(payload)
	if err != nil {
		return statement{}, err
	}
	m, b, err := doc.read(payload)
	if err != nil {
		return statement{}, err
	}
	commit, err := doc.commit(&b)
	if err != nil {
		return statement{}, err
	}
	return statement{commit, doc.PredicateType, b.repo, doc.outcome(&m, &b, commit)}, nil
}

func decodeDocument(payload []byte) (*statementJSON, error) {
	var doc statementJSON
	if err := decodeStatement(payload, &doc, ""); err != nil {
		return nil, err
	}
	return &doc, doc.check()
}

// read parses the predicate according to its type.
func (d *statementJSON) read(payload []byte) (Mapping, body, error) {
	m, err := mappingFor(d.PredicateType)
	if err != nil {
		return m, body{}, err
	}
	b, err := m.parse(payload[d.Predicate.start:d.Predicate.end])
	return m, b, err
}

// outcome returns the outcome of a statement about the given commit.
func (d *statementJSON) outcome(m *Mapping, b *body, commit string) Outcome {
	o := Outcome{Predicate: cmp.Or(b.predicate, d.PredicateType), Result: b.result, FinishedAt: b.finishedAt}
	if m.Slots {
		o.Slot = d.slot(commit)
	}
	return o
}

// Remap returns the outcome of a recorded statement by the present rules. Statements that
// these refuse state no outcome: they are recorded under their predicate type.
func Remap(payload []byte, predicateType, commit string) Outcome {
	refused := Outcome{Predicate: predicateType, Result: ledger.Result{Status: ledger.Recorded}}
	doc, err := decodeDocument(payload)
	if err != nil {
		return refused
	}
	m, b, err := doc.read(payload)
	if err != nil {
		return refused
	}
	return doc.outcome(&m, &b, commit)
}
