package attestation

import (
	"cmp"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A statement is the content of an in-toto statement about a commit.
type statement struct {
	commit        string
	predicateType string
	repo          string // the repo that it is for, if it says so
	outcome       Outcome
	exception     Exception
	artifacts     Artifacts
	merge         *Merge    // nil for other types
	rollback      *Rollback // the same
	again         string
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
	return statement{
		commit: commit, predicateType: doc.PredicateType, repo: b.repo, outcome: doc.outcome(&m, &b, commit),
		exception: b.exception, artifacts: doc.artifacts(&b, commit), merge: b.merge, rollback: b.rollback, again: b.again,
	}, nil
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
	o := Outcome{Predicate: cmp.Or(b.predicate, d.PredicateType), Slot: b.slot, Result: b.result, FinishedAt: b.finishedAt}
	if m.Slots {
		o.Slot = d.slot(commit)
	}
	return o
}

// maxAhead is how far the clock of a signer may be ahead of the ledger's.
const maxAhead = 5 * time.Minute

// A Recorded is a statement that earlier rules have accepted and mapped.
type Recorded struct {
	Envelope      []byte
	PredicateType string
	Commit        string
	RecordedAt    ledger.Time
	Outcome       Outcome // by the earlier rules
}

// Remap returns the outcome of a recorded statement by the present rules, and the
// artifacts that it links. What these refuse stays recorded: a failure as it was, so that
// it goes on blocking, and all else without an outcome, under its predicate type.
func Remap(r Recorded) (Outcome, Artifacts) {
	if r.PredicateType == SignedCommitType {
		return r.Outcome, Artifacts{}
	}
	o, artifacts, err := r.outcome()
	switch {
	case err == nil && o.FinishedAt > r.RecordedAt.Add(maxAhead):
		o.FinishedAt = 0
	case err == nil && r.Outcome.Result.Status.IsFailure() && o.Result.Status == ledger.Recorded:
		o.Result.Status = r.Outcome.Result.Status // of before rollout was read
	case err == nil:
	case r.Outcome.Result.Status.IsFailure():
		return r.Outcome, Artifacts{}
	default:
		return Outcome{Predicate: r.PredicateType, Result: ledger.Result{Status: ledger.Recorded}}, Artifacts{}
	}
	return o, artifacts
}

func (r *Recorded) outcome() (o Outcome, artifacts Artifacts, err error) {
	payload, err := Payload(r.Envelope)
	if err != nil {
		return o, artifacts, err
	}
	doc, err := decodeDocument(payload)
	if err != nil {
		return o, artifacts, err
	}
	m, b, err := doc.read(payload)
	if err != nil {
		return o, artifacts, err
	}
	return doc.outcome(&m, &b, r.Commit), doc.artifacts(&b, r.Commit), nil
}
