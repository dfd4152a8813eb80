package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// Gate answers whether a commit has reached the query's state.
func (s *Store) Gate(ctx context.Context, q DecisionQuery) (ledger.Gate, error) {
	return decided(ctx, s, q, func(x *question) (ledger.Gate, error) {
		if g, err := x.stored(q); err != nil || g.Reached {
			return g, err
		}
		if err := x.gather(); err != nil {
			return ledger.Gate{}, err
		}
		derived := x.d.contract.Derive(x.facts, x.now)
		c := ledger.Commit{Standing: derived.Standing, Requirements: derived.Requirements, RolledBack: derived.RolledBack}
		c.State = derived.State
		return c.Gate(*q.State, q.Environment), nil
	})
}

// stored answers from what is stored of the commit, without its evidence. Unless the answer is that
// the state is reached, the evidence must be read.
func (x *question) stored(q DecisionQuery) (g ledger.Gate, err error) {
	c := ledger.Commit{Standing: x.state}
	c.State = x.state
	switch {
	case q.Target != "" || x.isHistory():
		return g, nil
	case x.keepsStanding() && x.d.contract.Radar.Blocks(): // its overlaps may have changed
		return g, nil
	case x.keepsStanding():
		c.Standing = x.standing
	}

	if err := x.gatherVersions([]*subject{x.subject}); err != nil || x.isDue(x.now) {
		return g, err
	}
	if q.Environment != "" {
		if isChanged, err := x.changes(q.Environment); err != nil || isChanged {
			return g, err
		}
	}
	return c.Gate(*q.State, q.Environment), nil
}

// changes reports whether an attestation of the commit is about an environment, so that it may have
// been rolled back from there.
func (x *question) changes(environment string) (isChanged bool, err error) {
	err = x.Row(`
SELECT EXISTS (SELECT 1 FROM latest l JOIN predicates p ON p.id = l.predicate_id
  WHERE l.commit_id = ? AND p.name IN (?, ?))`,
		x.id, ledger.EnvironmentPredicate(environment), ledger.RollbackPredicate(environment)).Scan(&isChanged)
	if err != nil {
		return false, fmt.Errorf("find what was deployed: %w", err)
	}
	return isChanged, nil
}
