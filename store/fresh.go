package store

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An outdated is the error of a read that needs the state of a commit which is due: what it
// inherits has changed, or evidence has expired.
type outdated struct{ commit int64 }

func (*outdated) Error() string { return "the state of the commit is to be derived again" }

// fresh runs fn, which reads. If that is outdated, fresh derives the state of the commit, and runs
// fn again, for the last time. fn must then read what is stored, and derive the state itself: nothing
// may have been written, or the commit may be due again.
func (s *Store) fresh(ctx context.Context, org string, fn func(isLast bool) error) error {
	err := fn(false)
	o, ok := errors.AsType[*outdated](err)
	if !ok {
		return err
	}
	err = s.write(ctx, org, func(t *tx) error { return t.settleCommit(o.commit) })
	if err != nil && !txn.IsUnavailable(err) {
		return err
	}
	return fn(true)
}

// settleCommit settles a commit if it is due.
func (t *tx) settleCommit(id int64) error {
	c, err := t.findCommitRow(id)
	if err != nil {
		return err
	}
	list, err := t.subjectsOf([]*commitRow{c})
	if err != nil {
		return err
	}
	if err := t.gather(list); err != nil {
		return err
	}
	return t.settleDue(list[0], ledger.Cause{})
}

// A presentState is the state and the standing that a commit has now, and the rollbacks that keep it
// out of environments.
type presentState struct {
	state, standing ledger.State
	rolledBack      []ledger.CommitRollback
}

// needsDerivation reports whether what is stored of a commit does not say its present state and
// standing.
func needsDerivation(s *subject, now ledger.Time) bool {
	return s.state == ledger.Deployed || s.isDue(now)
}

// presentStates derives the present states and standings of commits of a repo. It leaves out those
// for which an expression has not been evaluated, and writes nothing.
func (rd reader) presentStates(d *deriver, ids []int64) (map[int64]presentState, error) {
	list, err := rd.readSubjects(d, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]presentState)
	for _, s := range list {
		if !s.isUnevaluated() {
			state, standing, rolledBack := d.contract.Present(s.facts, rd.Now)
			found[s.id] = presentState{state, standing, rolledBack}
		}
	}
	return found, nil
}
