package lists

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Gate answers whether a commit has reached the query's state. It reads the evidence only if what is
// stored of the commit does not say so.
func (li *Lists) Gate(ctx context.Context, q DecisionQuery) (ledger.Gate, error) {
	g, err := txn.ReadLoose(ctx, li.db, txn.ByOrg(q.Org), func(rd txn.Reader) (ledger.Gate, error) {
		return li.storedGate(rd, q)
	})
	if err != nil || g.Reached {
		return g, err
	}
	return decided(ctx, li, q, func(x *question) (ledger.Gate, error) {
		if err := li.gather(x); err != nil {
			return ledger.Gate{}, err
		}
		derived := x.Deriver.Contract.Derive(x.Facts, x.Now)
		if err := li.noteEarlier(x.Reader, x.Commit, derived.Requirements); err != nil {
			return ledger.Gate{}, err
		}
		c := ledger.Commit{Standing: derived.Standing, Requirements: derived.Requirements, RolledBack: derived.RolledBack}
		c.State = derived.State
		var err error
		if c.Delivery, err = li.Ships(x.Reader, x.Commit, q.Environment); err != nil {
			return ledger.Gate{}, err
		}
		return c.Gate(*q.State, q.Environment), nil
	})
}

// selectGate reads a commit by its full ID, with what says whether its stored state is that of now.
const selectGate = `
SELECT r.id, r.policy_version, r.policy_digest, o.distrusts,
  c.id, c.state, c.standing, c.policy_version, c.expires, c.tree_id, c.merged, c.basis, c.distrusts
FROM orgs o /*+ordered*/ JOIN repos r ON r.org_id = o.id /*+ordered*/ JOIN commits c ON c.repo_id = r.id
WHERE o.name = ? AND r.name = ? AND c.sha = ?`

// storedGate answers from what is stored of a commit, without its evidence. Unless the answer is that
// the state is reached, the evidence must be read. It needs no snapshot: each statement reads what may
// have changed since the one before, and a change makes it read the evidence.
func (li *Lists) storedGate(rd txn.Reader, q DecisionQuery) (g ledger.Gate, err error) {
	if q.Target != "" {
		return g, nil
	}
	var r txn.Repo
	s := &facts.Commit{CommitRow: new(facts.CommitRow)}
	err = rd.Row(selectGate, q.Org, q.Repo, q.Commit).Scan(&r.ID, &r.PolicyVersion, &r.PolicyDigest, &r.Distrusts,
		&s.ID, &s.State, &s.Standing, &s.PolicyVersion, &s.Expires, &s.TreeID, &s.Merged, &s.Basis,
		&s.CommitRow.Distrusts)
	if errors.Is(err, sql.ErrNoRows) { // such as of a prefix
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("read commit: %w", err)
	}
	if s.Deriver, err = li.facts.Deriver(rd, r); err != nil {
		return g, err
	}

	c := ledger.Commit{Standing: s.State}
	c.State = s.State
	switch {
	case s.IsHistory():
		return g, nil
	case s.KeepsStanding() && s.Deriver.Contract.Radar.Blocks(): // its overlaps may have changed
		return g, nil
	case s.KeepsStanding():
		c.Standing = s.Standing
	}

	if err := li.facts.GatherVersions(rd, []*facts.Commit{s}); err != nil || s.IsDue(rd.Now) {
		return g, err
	}
	if q.Environment != "" {
		if s.Deriver.Contract.DeliversTo(q.Environment) {
			return g, nil // all that is shipped must be read
		}
		if isChanged, err := changes(rd, s.ID, q.Environment); err != nil || isChanged {
			return g, err
		}
	}
	return c.Gate(*q.State, q.Environment), nil
}

// changes reports whether an attestation of the commit is about an environment, so that it may have
// been rolled back from there.
func changes(rd txn.Reader, commit int64, environment string) (isChanged bool, err error) {
	err = rd.Row(`
SELECT EXISTS (SELECT 1 FROM latest l JOIN predicates p ON p.id = l.predicate_id
  WHERE l.commit_id = ? AND p.name IN (?, ?))`,
		commit, ledger.EnvironmentPredicate(environment), ledger.RollbackPredicate(environment)).Scan(&isChanged)
	if err != nil {
		return false, fmt.Errorf("find what was deployed: %w", err)
	}
	return isChanged, nil
}
