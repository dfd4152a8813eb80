package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// An inheritance is a tree or a merged commit whose evidence has changed. All its commits are of one
// repo.
type inheritance struct{ tree, source, repo int64 }

const selectInheritances = `
SELECT i.tree_id, i.source_id, CASE WHEN i.source_id > 0 THEN (SELECT repo_id FROM commits WHERE id = i.source_id)
  ELSE (SELECT repo_id FROM commits /*+index commits_by_tree_id*/ WHERE tree_id = i.tree_id AND tree_id > 0 LIMIT 1) END
FROM inheritances i ORDER BY i.tree_id, i.source_id LIMIT ?`

// settleHeirs derives the states of commits that inherit evidence which has changed. What
// changes during the call is left to the next one.
func (s *Store) settleHeirs(ctx context.Context) error {
	list, err := read(ctx, s, forWrite(""), func(rd reader) ([]inheritance, error) {
		return all(rd, func(row scanner) (i inheritance, err error) {
			return i, row.Scan(&i.tree, &i.source, &i.repo)
		}, selectInheritances, maxInheritances)
	})
	if err != nil {
		return err
	}

	more := len(list) == maxInheritances
	for _, i := range list {
		last := false
		for n := 0; n < heirBatches && !last; n++ {
			last, err = writeOfRepo(ctx, s, i.repo, func(t *tx) (last bool, err error) { return t.settleNextHeirs(i) })
			if err != nil {
				return fmt.Errorf("tree %d, commit %d: %w", i.tree, i.source, err)
			}
		}
		more = more || !last
	}
	if more {
		s.wakeEvaluate()
	}
	return nil
}

// heirBatches is the number of batches of an inheritance that are settled before other tasks
// have their turn.
const heirBatches = 10

// maxInheritances is the number of inheritances that are settled before other tasks have
// their turn.
const maxInheritances = 100

// settleNextHeirs derives the states of the next commits that inherit.
func (t *tx) settleNextHeirs(i inheritance) (last bool, err error) {
	var cause ledger.Cause
	var done int64
	var again bool
	err = t.Row("SELECT cause_type, cause_id, done, again FROM inheritances WHERE tree_id = ? AND source_id = ?",
		i.tree, i.source).Scan(&cause.Type, &cause.ID, &done, &again)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil // done by another process
	}
	if err != nil {
		return false, fmt.Errorf("read the progress: %w", err)
	}

	commits, err := t.nextHeirs(i, done)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	if len(commits) == 0 {
		return true, t.endInheritance(i, again)
	}
	if err := t.settleOutdated(commits, cause); err != nil {
		return false, err
	}
	_, err = t.Exec("UPDATE inheritances SET done = ? WHERE tree_id = ? AND source_id = ?",
		commits[len(commits)-1].id, i.tree, i.source)
	return false, err
}

// endInheritance ends a round over the commits that inherit. If the evidence has changed
// again since it began, another one is due.
func (t *tx) endInheritance(i inheritance, again bool) error {
	query := "DELETE FROM inheritances WHERE tree_id = ? AND source_id = ?"
	if again {
		query = "UPDATE inheritances SET done = 0, again = 0 WHERE tree_id = ? AND source_id = ?"
		t.gathered.wakeEvaluate = true
	}
	_, err := t.Exec(query, i.tree, i.source)
	return err
}

// nextHeirs returns the next commits that inherit, for one write.
func (t *tx) nextHeirs(i inheritance, after int64) ([]*commitRow, error) {
	where, id := "tree_id = ? AND tree_id > 0 AND id > ?", i.tree
	if i.source != 0 {
		where, id = "id IN (SELECT commit_id FROM merges WHERE source_id = ?) AND id > ?", i.source
	}
	list, err := all(t.reader, scanCommitRow, selectCommitRow+"WHERE "+where+" ORDER BY id LIMIT ?",
		id, after, evaluateBatch)
	if err != nil {
		return nil, err
	}
	return t.firstCommits(list)
}

// settleOutdated derives those of the commits again that are due because of what they
// inherit. After a policy change, this is left to the re-evaluation.
func (t *tx) settleOutdated(commits []*commitRow, cause ledger.Cause) error {
	list, err := t.subjectsOf(commits)
	if err != nil {
		return err
	}
	if err := t.gather(list); err != nil {
		return err
	}
	for _, s := range list {
		if !s.isOutdated() || s.policyVersion != s.d.repo.policyVersion {
			continue
		}
		why := cause
		if s.hasExpired(t.now) {
			why = s.expiry(s.expires)
		}
		if err := t.settle(s, why); err != nil {
			return err
		}
	}
	return nil
}
