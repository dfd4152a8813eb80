package states

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A write settles few commits, so that other writes do not wait long: at most
// MaxSettled, with maxSettledEvidence attestations unless it is a single commit. Reading changedBytes
// of a change record takes as long as reading an attestation.
const (
	MaxSettled         = 100
	maxSettledEvidence = 1000
	changedBytes       = 2 << 10
)

// NextCommits returns the next commits of a repo for one write.
func NextCommits(t *txn.Tx, repoID, after int64) ([]int64, error) {
	list, err := txn.All(t.Reader, facts.ScanCommitRow, facts.SelectCommitRow+
		"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?",
		repoID, after, MaxSettled)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	if list, err = firstCommits(t, list); err != nil {
		return nil, fmt.Errorf("count carried evidence: %w", err)
	}
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids, nil
}

// firstCommits returns as many of the commits as one write settles.
func firstCommits(t *txn.Tx, list []*facts.CommitRow) ([]*facts.CommitRow, error) {
	return firstOf(t, list, func(c *facts.CommitRow) *facts.CommitRow { return c })
}

// firstOf is like firstCommits, for a list of anything that has a commit.
func firstOf[T any](t *txn.Tx, list []T, row func(T) *facts.CommitRow) ([]T, error) {
	ids := make([]any, len(list))
	for i := range list {
		ids[i] = row(list[i]).ID
	}
	sizes, err := facts.ChangeSizes(t.Reader, ids)
	if err != nil {
		return nil, err
	}

	evidence := 0
	for i := range list {
		c := row(list[i])
		carried, err := carriedCount(t, c)
		if err != nil {
			return nil, err
		}
		evidence += int(c.Attestations) + carried + sizes[c.ID]/changedBytes
		if i > 0 && evidence > maxSettledEvidence {
			return list[:i], nil
		}
	}
	return list, nil
}

// carriedCount returns how much evidence may carry to a commit, up to what does.
func carriedCount(t *txn.Tx, c *facts.CommitRow) (n int, err error) {
	if !c.Inherits() {
		return 0, nil
	}
	const query = "SELECT count(*) FROM (SELECT 1 FROM tree_latest WHERE tree_id = ? LIMIT ?) AS t"
	err = t.Row(query, c.TreeID, policy.MaxTopics).Scan(&n)
	if c.Merged&facts.IsMerge != 0 {
		n = policy.MaxTopics // at most
	}
	return n, err
}
