package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
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

// Settle does all pending work of Evaluate once, unless the clock is wrong. If one repo fails, it
// continues with the others, and returns all errors.
func (s *Store) Settle(ctx context.Context) error {
	var errs []error
	if err := s.watchClock(ctx); err != nil {
		errs = append(errs, fmt.Errorf("watch the clock: %w", err))
	}
	if s.CheckClock() != nil {
		return errors.Join(errs...)
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

	if err := s.expireAll(ctx); err != nil {
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

// expireAll settles the commits with expired evidence or expired blocking overlaps. The commits of
// an org do not wait for those of others.
func (s *Store) expireAll(ctx context.Context) error {
	for {
		due, err := s.expired(ctx)
		if err != nil {
			return err
		}

		settled := 0
		var errs []error
		for org, commits := range due {
			write := sqldb.Write{Owners: []int64{org}}
			n, err := writeAs(ctx, s, write, func(t *tx) (int, error) { return t.expire(commits) })
			if err != nil {
				errs = append(errs, fmt.Errorf("org %d: %w", org, err))
			}
			settled += n
		}
		if err := errors.Join(errs...); err != nil || settled == 0 {
			return err
		}
	}
}

// expired returns the commits whose evidence or blocking overlaps expired first, by the row id of
// their org. It does not take the write lock.
func (s *Store) expired(ctx context.Context) (due map[int64][]any, err error) {
	due = make(map[int64][]any)
	_, err = read(ctx, s, forWrite(""), func(rd reader) (struct{}, error) {
		return struct{}{}, rd.Each(func(row scanner) error {
			var commit, org int64
			err := row.Scan(&commit, &org)
			due[org] = append(due[org], commit)
			return err
		}, `
SELECT c.id, r.org_id FROM commits c JOIN repos r ON r.id = c.repo_id
WHERE c.expires > 0 AND c.expires <= ? ORDER BY c.expires LIMIT ?`, rd.now, evaluateBatch)
	})
	return due, err
}

// expire settles those of an org's commits that have expired evidence or expired blocking overlaps,
// or the first of them if they have much evidence. It returns how many of them are not due any more.
func (t *tx) expire(commits []any) (settled int, err error) {
	var due []*commitRow
	err = t.EachIn(func(row scanner) error {
		c, err := scanCommitRow(row)
		if err == nil && c.expires > 0 && c.expires <= t.now {
			due = append(due, c)
		}
		return err
	}, selectCommitRow+"WHERE id IN ", 1, commits)
	if err != nil {
		return 0, fmt.Errorf("read commits: %w", err)
	}
	slices.SortFunc(due, func(a, b *commitRow) int {
		return cmp.Or(cmp.Compare(a.expires, b.expires), cmp.Compare(a.id, b.id))
	})

	now, err := t.firstCommits(due)
	if err != nil {
		return 0, fmt.Errorf("count carried evidence: %w", err)
	}
	list, err := t.subjectsOf(now)
	if err != nil {
		return 0, err
	}
	if err := t.gather(list); err != nil {
		return 0, err
	}
	for _, s := range list {
		if err := t.settleDue(s); err != nil {
			return 0, err
		}
		if s.expires == 0 || s.expires > t.now {
			settled++
		}
	}
	return settled, nil
}
