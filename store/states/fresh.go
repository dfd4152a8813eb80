package states

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An Outdated is the error of a read that needs the state of a commit which is due: what it
// inherits has changed, or evidence has expired.
type Outdated struct{ Commit int64 }

func (*Outdated) Error() string { return "the state of the commit is to be derived again" }

// Fresh runs fn, which reads. If that is outdated, fresh derives the state of the commit, and runs
// fn again, for the last time. fn must then read what is stored, and derive the state itself: nothing
// may have been written, or the commit may be due again.
func (st *States) Fresh(ctx context.Context, org string, fn func(isLast bool) error) error {
	err := fn(false)
	o, ok := errors.AsType[*Outdated](err)
	if !ok {
		return err
	}
	err = st.db.Change(ctx, org, func(t *txn.Tx) error { return st.settleCommit(t, o.Commit) })
	if err != nil && !txn.IsUnavailable(err) {
		return err
	}
	return fn(true)
}

// A PresentState is the state and the standing that a commit has now, and the rollbacks that keep it
// out of environments.
type PresentState struct {
	State, Standing ledger.State
	RolledBack      []ledger.CommitRollback
}

// NeedsDerivation reports whether what is stored of a commit does not say its present state and
// standing.
func NeedsDerivation(s *facts.Commit, now ledger.Time) bool {
	return s.State == ledger.Deployed || s.IsDue(now)
}

// PresentStates derives the present states and standings of commits of a repo. It leaves out those
// for which an expression has not been evaluated, and writes nothing.
func (st *States) PresentStates(rd txn.Reader, d *facts.Deriver, ids []int64) (map[int64]PresentState, error) {
	list, err := st.ReadCommits(rd, d, ids)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]PresentState)
	for _, s := range list {
		if !s.IsUnevaluated() {
			state, standing, rolledBack := d.Contract.Present(s.Facts, rd.Now)
			found[s.ID] = PresentState{state, standing, rolledBack}
		}
	}
	return found, nil
}
