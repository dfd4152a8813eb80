package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// rederiveOrg has all commits of an org derived again in the background, with a cause.
func (t *tx) rederiveOrg(orgID int64, cause ledger.Cause) error {
	_, err := t.Exec(`
INSERT INTO rederivations (repo_id, cause_type, cause_id, done) SELECT id, ?, ?, 0
FROM repos WHERE org_id = ? AND deleted_at = 0
ON CONFLICT (repo_id) DO UPDATE SET cause_type = excluded.cause_type, cause_id = excluded.cause_id, done = 0`,
		string(cause.Type), cause.ID, orgID)
	if err != nil {
		return fmt.Errorf("plan to derive the states of an org: %w", err)
	}
	t.gathered.wakeEvaluate = true
	return nil
}

// rederive derives the states of all commits that are to be derived again. If the clock has become wrong
// since Settle began, it waits: they may have been marked because the right one is accepted.
func (s *Store) rederive(ctx context.Context) error {
	if s.CheckClock() != nil {
		return nil
	}
	repos, err := read(ctx, s, forWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, scanID, "SELECT repo_id FROM rederivations ORDER BY repo_id")
	})
	errs := []error{err}
	for _, id := range repos {
		if err := s.rederiveAll(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("repo %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// rederiveAll derives the states of a repo's commits that are to be derived again.
func (s *Store) rederiveAll(ctx context.Context, repoID int64) error {
	const progress = "SELECT done FROM rederivations WHERE repo_id = ?"
	stuck := false
	for last, idle := false, 0; !last; idle = idleAfter(idle, stuck) {
		if err := s.evaluateNext(ctx, repoID, progress, idle); err != nil {
			return err
		}
		var err error
		last, err = writeOfRepo(ctx, s, repoID, func(t *tx) (last bool, err error) {
			last, stuck, err = t.rederiveBatch(repoID)
			return last, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rederiveBatch derives the states of the next commits of a repo. stuck reports that the
// first of them has no verdicts yet.
func (t *tx) rederiveBatch(repoID int64) (last, stuck bool, err error) {
	var done int64
	var cause ledger.Cause
	err = t.Row("SELECT cause_type, cause_id, done FROM rederivations WHERE repo_id = ?", repoID).
		Scan(&cause.Type, &cause.ID, &done)
	if errors.Is(err, sql.ErrNoRows) {
		return true, false, nil // done by another process
	}
	if err != nil {
		return false, false, fmt.Errorf("read the progress: %w", err)
	}

	d, commits, stuck, err := t.nextEvaluated(repoID, done)
	if err != nil || stuck {
		return false, stuck, err
	}
	if d == nil {
		_, err := t.Exec("DELETE FROM rederivations WHERE repo_id = ?", repoID)
		return true, false, err
	}

	causes := make(map[int64]ledger.Cause, len(commits))
	for _, id := range commits {
		causes[id] = cause
	}
	if err := t.deriveAgain(causes); err != nil {
		return false, false, err
	}
	_, err = t.Exec("UPDATE rederivations SET done = ? WHERE repo_id = ?", commits[len(commits)-1], repoID)
	return false, false, err
}

// deriveAgain settles commits, each with a cause. It leaves those to Evaluate that it has
// still to reach after a policy change, and those that are too much for one write.
func (t *tx) deriveAgain(causes map[int64]ledger.Cause) error {
	var commits []*commitRow
	for _, id := range slices.Sorted(maps.Keys(causes)) {
		c, err := t.findCommitRow(id)
		if err != nil {
			return err
		}
		commits = append(commits, c)
	}

	list, err := t.subjectsOf(commits)
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := t.watch(s); err != nil {
			return err
		}
	}
	list = slices.DeleteFunc(list, func(s *subject) bool {
		return s.isHistory() || s.policyVersion != s.d.repo.policyVersion
	})
	now, err := firstOf(t, list, func(s *subject) *commitRow { return s.commitRow })
	if err != nil {
		return fmt.Errorf("count carried evidence: %w", err)
	}
	for _, s := range list[len(now):] {
		if err := t.postpone(s, causes[s.id]); err != nil {
			return err
		}
	}

	if err := t.gather(now); err != nil {
		return err
	}
	for _, s := range now {
		if err := t.settle(s, causes[s.id]); err != nil {
			return err
		}
	}
	return nil
}
