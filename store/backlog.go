package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// later adds a job to the backlog, or joins it with the one that waits.
func (t *tx) later(repoID int64, kind task, ref int64, cause ledger.Cause) error {
	return t.laterFor("FROM repos WHERE id = ?", kind, ref, cause, repoID)
}

// laterFor is like later, for the repos that a query finds.
func (t *tx) laterFor(from string, kind task, ref int64, cause ledger.Cause, args ...any) error {
	_, err := t.Exec(insertJob+"SELECT id, ?, ?, org_id, ?, ?, 0, ?, ? "+from+mergeJob,
		append([]any{string(kind), ref, string(cause.Type), cause.ID, t.Now, t.Now}, args...)...)
	if err != nil {
		return fmt.Errorf("add a job of the task %s to the backlog: %w", kind, err)
	}
	t.gathered.wake = true
	return nil
}

// settleOrg has all commits of an org settled in the background, with a cause.
func (t *tx) settleOrg(orgID int64, cause ledger.Cause) error {
	return t.laterFor("FROM repos WHERE org_id = ? AND deleted_at = 0", taskSettle, 0, cause, orgID)
}

// leaseTime is how long a server has a job to itself after each step.
const leaseTime = 10 * time.Second

// A dueTask is a task of which an org has due jobs.
type dueTask struct {
	org  int64
	task task
}

// selectDue selects the orgs that have due jobs of a task. It examines one job of each org.
const selectDue = `
SELECT id FROM orgs o WHERE EXISTS (
  SELECT 1 FROM backlog WHERE org_id = o.id AND kind = ? AND not_before <= ? AND ` + isFree + `) ORDER BY id`

// dueTasks lists of which tasks orgs have due jobs, in the order of the tasks.
func (s *Store) dueTasks(ctx context.Context, of ...task) ([]dueTask, error) {
	return readLoose(ctx, s, txn.ForWrite(""), func(rd reader) (list []dueTask, err error) {
		for _, kind := range of {
			err := rd.Each(func(row txn.Scanner) error {
				d := dueTask{task: kind}
				err := row.Scan(&d.org)
				list = append(list, d)
				return err
			}, selectDue, string(kind), rd.Now, s.name, rd.Now)
			if err != nil {
				return nil, err
			}
		}
		return list, nil
	})
}

// nextJob returns the job of a task that has waited for its turn longest, or nil.
func (s *Store) nextJob(ctx context.Context, d dueTask) (*job, error) {
	return readLoose(ctx, s, txn.ForWrite(""), func(rd reader) (*job, error) {
		j, err := scanJob(rd.Row(selectJob+"WHERE org_id = ? AND kind = ? AND not_before <= ? AND "+isFree+
			" ORDER BY not_before LIMIT 1", d.org, string(d.task), rd.Now, s.name, rd.Now))
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return &j, err
	})
}

// advance runs fn, a step of a job, in a write, and saves how far the job is. fn gets the job as it is
// stored, sets its position, and reports whether it is done. If a job that is done has another turn later, fn
// sets notBefore. advance does nothing if another server has done the job, or works on it.
func (s *Store) advance(ctx context.Context, j *job, fn func(*tx, *job) (done bool, err error)) error {
	w := sqldb.Write{Owners: []int64{j.org}, Yields: j.task.yields()}
	_, err := writeAs(ctx, s, w, func(t *tx) (_ struct{}, err error) { return struct{}{}, t.advance(j, s.name, fn) })
	return err
}

func (t *tx) advance(j *job, server string, fn func(*tx, *job) (done bool, err error)) (err error) {
	stored, err := scanJob(t.Row(selectJob+"WHERE repo_id = ? AND kind = ? AND ref = ? AND "+isFree,
		j.repo, string(j.task), j.ref, server, t.Now))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a job: %w", err)
	}

	*j = stored
	j.notBefore = t.Now
	done, err := fn(t, j)
	if err != nil {
		return err
	}
	if err := t.saveJob(j, done, server); err != nil {
		return fmt.Errorf("save a job: %w", err)
	}
	return nil
}

// saveJob saves how far a job is, and deletes it if it is done.
func (t *tx) saveJob(j *job, done bool, server string) error {
	switch {
	case done && j.again:
		j.position, t.gathered.wake = 0, true
	case done && j.notBefore > t.Now:
		j.since = j.notBefore
	case done:
		_, err := t.Exec("DELETE FROM backlog WHERE repo_id = ? AND kind = ? AND ref = ?", j.repo, string(j.task), j.ref)
		return err
	}
	held := ledger.Time(0)
	if !done {
		held = t.Now.Add(leaseTime)
	}
	_, err := t.Exec(`
UPDATE backlog SET position = ?, again = ?, since = ?, not_before = ?, tries = 0, error = '', holder = ?, held_until = ?
WHERE repo_id = ? AND kind = ? AND ref = ?`,
		j.position, j.again && !done, j.since, j.notBefore, server, held, j.repo, string(j.task), j.ref)
	return err
}

// Times that a job waits after a turn that failed: twice as long after each.
const (
	minWait = time.Second
	maxWait = 5 * time.Minute
)

// putOff notes that a turn of a job has failed, and when the next one is. Other jobs do not wait for it.
func (s *Store) putOff(ctx context.Context, j *job, reason error) error {
	wait := min(minWait<<min(j.tries, 20), maxWait)
	return s.writeFor(ctx, []int64{j.org}, func(t *tx) error {
		_, err := t.Exec(`
UPDATE backlog SET tries = tries + 1, error = ?, not_before = ?, held_until = 0
WHERE repo_id = ? AND kind = ? AND ref = ?`, clip(reason.Error()), t.Now.Add(wait), j.repo, string(j.task), j.ref)
		if err != nil {
			return fmt.Errorf("put off a job: %w", err)
		}
		return nil
	})
}

// maxReason is the maximum length of the error that is noted of a job, in bytes.
const maxReason = 500

func clip(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}
