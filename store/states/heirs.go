package states

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SettleHeirs settles the next commits that inherit evidence which has changed: those with a tree, or the
// merges of a commit.
func (st *States) SettleHeirs(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	where := "tree_id = ?1 AND tree_id > 0 AND id > ?2"
	if j.Task == backlog.Merges {
		where = `id > ?2 AND id IN (SELECT commit_id FROM merges WHERE source_id = ?1
UNION SELECT commit_id FROM merges WHERE parent_id = ?1 AND parent_id > 0)`
	}
	commits, err := txn.All(t.Reader, facts.ScanCommitRow, facts.SelectCommitRow+"WHERE "+where+" ORDER BY id LIMIT ?3",
		j.Ref, j.Position, MaxSettled)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	if commits, err = firstCommits(t, commits); err != nil || len(commits) == 0 {
		return err == nil, err
	}
	j.Position = commits[len(commits)-1].ID

	list, err := st.commitsOf(t, commits)
	if err != nil {
		return false, err
	}
	if err := st.facts.Gather(t.Reader, list); err != nil {
		return false, err
	}
	for _, s := range list {
		if !s.IsOutdated() || s.PolicyVersion != s.Deriver.Repo.PolicyVersion {
			continue // a policy has a job of its own
		}
		if err := st.SettleDue(t, s, j.Cause); err != nil {
			return false, err
		}
	}
	return false, nil
}
