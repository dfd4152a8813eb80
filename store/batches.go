package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A write settles few commits, so that other writes do not wait long: at most
// maxSettled, with maxSettledEvidence attestations unless it is a single commit. Reading changedBytes
// of a change record takes as long as reading an attestation.
const (
	maxSettled         = 100
	maxSettledEvidence = 1000
	changedBytes       = 2 << 10
)

// nextCommits returns the next commits of a repo for one write.
func (t *tx) nextCommits(repoID, after int64) ([]int64, error) {
	list, err := all(t.reader, scanCommitRow, selectCommitRow+"WHERE repo_id = ? AND id > ? ORDER BY id LIMIT ?",
		repoID, after, maxSettled)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	if list, err = t.firstCommits(list); err != nil {
		return nil, fmt.Errorf("count carried evidence: %w", err)
	}
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = c.id
	}
	return ids, nil
}

// firstCommits returns as many of the commits as one write settles.
func (t *tx) firstCommits(list []*commitRow) ([]*commitRow, error) {
	return firstOf(t, list, func(c *commitRow) *commitRow { return c })
}

// firstOf is like firstCommits, for a list of anything that has a commit.
func firstOf[T any](t *tx, list []T, row func(T) *commitRow) ([]T, error) {
	ids := make([]any, len(list))
	for i := range list {
		ids[i] = row(list[i]).id
	}
	sizes, err := t.changeSizes(ids)
	if err != nil {
		return nil, err
	}

	evidence := 0
	for i := range list {
		c := row(list[i])
		carried, err := t.carriedCount(c)
		if err != nil {
			return nil, err
		}
		evidence += int(c.attestations) + carried + sizes[c.id]/changedBytes
		if i > 0 && evidence > maxSettledEvidence {
			return list[:i], nil
		}
	}
	return list, nil
}

// carriedCount returns how much evidence may carry to a commit, up to what does.
func (t *tx) carriedCount(c *commitRow) (n int, err error) {
	if !c.inherits() {
		return 0, nil
	}
	const query = "SELECT count(*) FROM (SELECT 1 FROM tree_latest WHERE tree_id = ? LIMIT ?) AS t"
	err = t.Row(query, c.treeID, policy.MaxTopics).Scan(&n)
	if c.merged&isMerge != 0 {
		n = policy.MaxTopics // at most
	}
	return n, err
}
