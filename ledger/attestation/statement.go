package attestation

import (
	"cmp"
	"errors"
	"slices"
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
	baseline      *Baseline // the same
	changes       *Changes  // the same
	again         string
	// isPlaced reports whether its meaning depends on the web URL of the repo.
	isPlaced bool
}

// parseStatement parses an in-toto statement about a commit of the repo at a place.
func parseStatement(payload []byte, at Place) (statement, error) {
	doc, err := decodeDocument(payload)
	if err != nil {
		return statement{}, err
	}
	m, b, err := doc.read(payload)
	if err != nil {
		return statement{}, err
	}
	commit, err := doc.commit(&b, at)
	if err != nil {
		return statement{}, err
	}
	if err := at.checkVerified(b.verified); err != nil {
		return statement{}, err
	}
	return statement{
		commit: commit, predicateType: doc.PredicateType, repo: b.repo, outcome: doc.outcome(&m, &b, commit),
		exception: b.exception, artifacts: doc.artifacts(&b, commit), merge: b.merge, rollback: b.rollback,
		baseline: b.baseline, changes: b.changes, again: b.again, isPlaced: doc.isPlaced(&b),
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
	WebURL        string // of the repo; empty if it is not known
	RecordedAt    ledger.Time
	Outcome       Outcome // by the earlier rules
}

// A Remapping is what the present rules make of a recorded statement.
type Remapping struct {
	Outcome   Outcome
	Artifacts Artifacts
	// Disowned are the artifacts of a statement that is not about the commit by the present rules.
	Disowned []string

	isPlaced bool       // as statement.isPlaced
	whole    *Remapping // what it is if it is about the commit; nil if it is refused in any case
}

// Remap maps a recorded statement by the present rules. What these refuse, or read as a statement about something
// else, stays recorded: a failure as it was, so that it goes on blocking, and all else without an outcome, under its
// predicate type, and linking nothing.
func Remap(r Recorded) Remapping {
	if r.PredicateType == SignedCommitType {
		return Remapping{Outcome: r.Outcome}
	}
	m, err := r.remap()
	switch {
	case err == nil:
	case r.Outcome.Result.Status.IsFailure():
		m.Outcome = r.Outcome
		if m.whole != nil {
			m.Artifacts = m.whole.Artifacts
		}
	default:
		m.Outcome = Unread(r.PredicateType)
		if m.whole != nil {
			m.Disowned = m.whole.Artifacts.Digests
		}
	}
	return m
}

// RemapAgain returns what Remap has made of a statement. The web URL that the repo had then is not known: if it
// decides, r.Outcome, which is what is shown of the statement, says what it was, except of a failure.
func RemapAgain(r Recorded) Remapping {
	switch m := Remap(r); {
	case !m.isPlaced || m.whole == nil:
		return m
	case r.Outcome == Unread(r.PredicateType) && !m.whole.Outcome.Result.Status.IsFailure():
		return Remapping{Outcome: r.Outcome}
	default:
		return *m.whole
	}
}

// correct adjusts an outcome that was mapped again. It drops a finish time in the future. It keeps a failure that was
// recorded before the member rollout was read.
func (r *Recorded) correct(o Outcome) Outcome {
	switch {
	case o.FinishedAt > r.RecordedAt.Add(maxAhead):
		o.FinishedAt = 0
	case r.Outcome.Result.Status.IsFailure() && o.Result.Status == ledger.Recorded:
		o.Result.Status = r.Outcome.Result.Status
	}
	return o
}

// Unread returns the outcome of a statement of a type that the present rules refuse, or that they read as one about
// something else.
func Unread(predicateType string) Outcome {
	return Outcome{Predicate: predicateType, Result: ledger.Result{Status: ledger.Recorded}}
}

func (r *Recorded) remap() (m Remapping, err error) {
	payload, err := Payload(r.Envelope)
	if err != nil {
		return m, err
	}
	doc, err := decodeDocument(payload)
	if err != nil {
		return m, err
	}
	mapping, b, err := doc.read(payload)
	if err != nil {
		return m, err
	}

	m.isPlaced = doc.isPlaced(&b)
	m.whole = &Remapping{Outcome: r.correct(doc.outcome(&mapping, &b, r.Commit)), Artifacts: doc.artifacts(&b, r.Commit)}
	at := Place{WebURL: r.WebURL}
	commits, err := doc.commits(&b, at)
	if err == nil && !slices.Contains(commits, r.Commit) {
		err = errors.New("the statement is about another commit")
	}
	if err = cmp.Or(err, at.checkVerified(b.verified)); err != nil {
		return m, err
	}
	m.Outcome, m.Artifacts = m.whole.Outcome, m.whole.Artifacts
	return m, nil
}
