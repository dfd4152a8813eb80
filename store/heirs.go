package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/backlog"
)

// settleHeirs settles the next commits that inherit evidence which has changed: those with a tree, or the
// merges of a commit.
func (t *tx) settleHeirs(j *backlog.Job) (done bool, err error) {
	where := "tree_id = ? AND tree_id > 0 AND id > ?"
	if j.Task == backlog.Merges {
		where = "id IN (SELECT commit_id FROM merges WHERE source_id = ?) AND id > ?"
	}
	commits, err := all(t.reader, scanCommitRow, selectCommitRow+"WHERE "+where+" ORDER BY id LIMIT ?",
		j.Ref, j.Position, maxSettled)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	if commits, err = t.firstCommits(commits); err != nil || len(commits) == 0 {
		return err == nil, err
	}
	j.Position = commits[len(commits)-1].id

	list, err := t.subjectsOf(commits)
	if err != nil {
		return false, err
	}
	if err := t.gather(list); err != nil {
		return false, err
	}
	for _, s := range list {
		if !s.isOutdated() || s.policyVersion != s.d.repo.PolicyVersion {
			continue // a policy has a job of its own
		}
		if err := t.settleDue(s, j.Cause); err != nil {
			return false, err
		}
	}
	return false, nil
}
