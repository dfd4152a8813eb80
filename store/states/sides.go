package states

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// dueBelow returns the commits of the mainline on which a merge rests and that are due because of a policy or a
// revocation, those first on which others rest. It returns none if they are more than a write settles.
func dueBelow(t *txn.Tx, s *facts.Commit) (list []int64, err error) {
	seen := make(map[int64]bool)
	var follow func(merge int64) error
	follow = func(merge int64) error {
		sides, err := dueSides(t, merge, s.Deriver.Repo)
		for i := 0; i < len(sides) && err == nil && len(seen) <= MaxSettled; i++ {
			if side := sides[i]; !seen[side] {
				seen[side] = true
				err = follow(side)
				list = append(list, side)
			}
		}
		return err
	}

	if err := follow(s.ID); err != nil || len(seen) > MaxSettled || len(list) == 0 {
		return nil, err
	}
	rows := make([]*facts.CommitRow, len(list))
	for i, id := range list {
		if rows[i], err = facts.FindCommitRow(t.Reader, id); err != nil {
			return nil, err
		}
	}
	if first, err := firstCommits(t, rows); err != nil || len(first) < len(rows) {
		return nil, err
	}
	return list, nil
}

// dueSides returns the commits of the mainline that claims about a merge name and that are due because of a policy or
// a revocation.
func dueSides(t *txn.Tx, merge int64, r txn.Repo) ([]int64, error) {
	list, err := txn.All(t.Reader, func(row txn.Scanner) (id int64, err error) { return id, row.Scan(&id) }, `
SELECT p.id FROM merges m /*+index merges_by_commit*/ /*+ordered*/ JOIN commits p ON p.id = m.parent_id
WHERE m.commit_id = ? AND m.reason = '' AND (p.policy_version <> ? OR p.distrusts <> ?)`,
		merge, r.PolicyVersion, r.Distrusts)
	if err != nil {
		return nil, fmt.Errorf("find due commits of the mainline: %w", err)
	}
	slices.Sort(list)
	return list, nil
}
