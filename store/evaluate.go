package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// evaluateInterval is how often Evaluate checks for policies changed by other
	// processes and for expired evidence.
	evaluateInterval = time.Second
)

// Evaluate re-evaluates commits in the background until ctx is done: the commits of a
// repo whose policy has changed, and commits with evidence or blocking overlaps that
// have expired. The pending work is in the database, so it survives a crash. The first
// of consecutive errors is logged, and the work is retried.
func (s *Store) Evaluate(ctx context.Context) {
	failures := series{log: s.log, task: "re-evaluating commits"}
	tick := time.NewTicker(evaluateInterval)
	defer tick.Stop()
	for {
		if err := s.Settle(ctx); ctx.Err() == nil {
			failures.observe(ctx, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
		}
	}
}

// Settle does all pending work of Evaluate once. If one repo fails, it continues with
// the others, and returns all errors.
func (s *Store) Settle(ctx context.Context) error {
	var errs []error
	if err := s.correctTimes(ctx); err != nil {
		errs = append(errs, fmt.Errorf("correct times after the clock went back: %w", err))
	}

	if err := s.remap(ctx); err != nil {
		errs = append(errs, fmt.Errorf("map statements by new rules: %w", err))
	}
	if err := s.repairLatest(ctx); err != nil {
		errs = append(errs, fmt.Errorf("replace distrusted evidence: %w", err))
	}
	if err := s.rederive(ctx); err != nil {
		errs = append(errs, fmt.Errorf("derive states after people were joined: %w", err))
	}

	if err := s.settleHeirs(ctx); err != nil {
		errs = append(errs, fmt.Errorf("derive states after inherited evidence changed: %w", err))
	}

	repos, err := s.reevaluations(ctx)
	errs = append(errs, err)
	for _, repoID := range repos {
		if err := s.reevaluateAll(ctx, repoID); err != nil {
			errs = append(errs, fmt.Errorf("re-evaluate repo %d: %w", repoID, err))
		}
	}
	if err := s.closePlanned(ctx); err != nil {
		errs = append(errs, fmt.Errorf("close violations: %w", err))
	}
	if err := s.rescanMarked(ctx); err != nil {
		errs = append(errs, fmt.Errorf("re-scan tips: %w", err))
	}

	expired, err := s.hasExpired(ctx)
	if err == nil && expired {
		err = s.repeat(ctx, (*tx).expire)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("re-evaluate commits with expired evidence: %w", err))
	}
	return errors.Join(errs...)
}

// reevaluations lists the repos whose policy has changed.
func (s *Store) reevaluations(ctx context.Context) ([]int64, error) {
	return read(ctx, s, forWrite(""), func(rd reader) ([]int64, error) {
		return all(rd, scanID, "SELECT repo_id FROM reevaluations ORDER BY repo_id")
	})
}

// reevaluateAll settles all commits of a repo after a policy change.
func (s *Store) reevaluateAll(ctx context.Context, repoID int64) error {
	const progress = "SELECT done FROM reevaluations WHERE repo_id = ?"
	stuck := false
	for last, idle := false, 0; !last; idle = idleAfter(idle, stuck) {
		if err := s.evaluateNext(ctx, repoID, progress, idle); err != nil {
			return err
		}
		var err error
		last, err = s.scanOnce(ctx, repoID, func(t *tx) (last bool, err error) {
			last, stuck, err = t.reevaluate(repoID)
			return last, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reevaluate settles the next batch of a repo's commits after a policy change. stuck
// reports that the first of them has no verdicts yet.
func (t *tx) reevaluate(repoID int64) (last, stuck bool, err error) {
	var done int64
	err = t.Row("SELECT done FROM reevaluations WHERE repo_id = ?", repoID).Scan(&done)
	if errors.Is(err, sql.ErrNoRows) {
		return true, false, nil // done by another process
	}
	if err != nil {
		return false, false, fmt.Errorf("read re-evaluation: %w", err)
	}

	d, commits, stuck, err := t.nextEvaluated(repoID, done)
	if err != nil || stuck {
		return false, stuck, err
	}
	if d == nil {
		_, err := t.Exec("DELETE FROM reevaluations WHERE repo_id = ?", repoID)
		return true, false, err
	}

	if done, err = t.reevaluateBatch(d, commits); err != nil {
		return false, false, err
	}
	_, err = t.Exec("UPDATE reevaluations SET done = ? WHERE repo_id = ?", done, repoID)
	return false, false, err
}

// reevaluateBatch settles as many of the commits as fit in one write, after a policy
// change, and returns the last of them. The radar scans all of them first: no commit
// may change its state before its overlaps are known.
func (t *tx) reevaluateBatch(d *deriver, commits []int64) (done int64, err error) {
	t.evaluating = true
	for rescans := 0; len(commits) > 0 && rescans < rescanBatchSize; commits = commits[1:] {
		done = commits[0]
		result, err := t.rescan(d, done)
		if err != nil {
			return 0, err
		}
		if result.scanned {
			rescans++
			t.addWork(d.policyCause(), done)
		}
		t.work.add(done, workEntry{reached: true})
	}
	return done, t.drain(d)
}

// hasExpired reports whether evidence or a blocking overlap of any commit has expired.
// It does not take the write lock.
func (s *Store) hasExpired(ctx context.Context) (bool, error) {
	return read(ctx, s, forWrite(""), func(rd reader) (expired bool, err error) {
		const query = "SELECT EXISTS (SELECT 1 FROM commits WHERE expires > 0 AND expires <= ?)"
		return expired, rd.Row(query, rd.now).Scan(&expired)
	})
}

// expire settles the next batch of commits with expired evidence or expired blocking
// overlaps.
func (t *tx) expire() (last bool, err error) {
	due, err := all(t.reader, scanCommitRow,
		selectCommitRow+"WHERE expires > 0 AND expires <= ? ORDER BY expires LIMIT ?", t.now, evaluateBatch)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}

	now, err := t.firstCommits(due)
	if err != nil {
		return false, fmt.Errorf("count carried evidence: %w", err)
	}
	list, err := t.subjectsOf(now)
	if err != nil {
		return false, err
	}
	if err := t.gather(list); err != nil {
		return false, err
	}
	if err := t.checkPrepared(list); err != nil && t.prepared < maxPrepared {
		return false, err
	}

	for _, s := range list {
		settle := t.settleDue
		if !s.isPrepared() { // commits of other repos must not wait for it
			settle = t.postponeDue
		}
		if err := settle(s); err != nil {
			return false, err
		}
	}
	return len(due) < evaluateBatch && len(now) == len(due), nil
}
