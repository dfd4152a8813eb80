package backlog

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

// leaseTime is how long a server has a job to itself after each step.
const leaseTime = 10 * time.Second

// A turn is a task of which an org has due jobs.
type turn struct {
	org  int64
	task Task
}

// selectDue selects the orgs that have due jobs of a task. It examines one job of each org.
const selectDue = `
SELECT id FROM orgs o WHERE EXISTS (
  SELECT 1 FROM backlog WHERE org_id = o.id AND kind = ? AND not_before <= ? AND ` + isFree + `) ORDER BY id`

// due lists of which tasks orgs have due jobs, in the order of the tasks.
func (bl *Jobs) due(ctx context.Context, of ...Task) ([]turn, error) {
	return txn.ReadLoose(ctx, bl.db, txn.ForWrite(""), func(rd txn.Reader) (list []turn, err error) {
		for _, kind := range of {
			err := rd.Each(func(row txn.Scanner) error {
				d := turn{task: kind}
				err := row.Scan(&d.org)
				list = append(list, d)
				return err
			}, selectDue, string(kind), rd.Now, bl.server, rd.Now)
			if err != nil {
				return nil, err
			}
		}
		return list, nil
	})
}

// Next returns the job of a task that has waited for its turn longest, or nil.
func (bl *Jobs) Next(ctx context.Context, org int64, task Task) (*Job, error) {
	return txn.ReadLoose(ctx, bl.db, txn.ForWrite(""), func(rd txn.Reader) (*Job, error) {
		j, err := scanJob(rd.Row(selectJob+"WHERE org_id = ? AND kind = ? AND not_before <= ? AND "+isFree+
			" ORDER BY not_before LIMIT 1", org, string(task), rd.Now, bl.server, rd.Now))
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return &j, err
	})
}

// Advance runs fn, a step of a job, in a write, and saves how far the job is. fn gets the job as it is
// stored, sets its position, and reports whether it is done. If a job that is done has another turn later, fn
// sets NotBefore. Advance does nothing if another server has done the job, or works on it.
func (bl *Jobs) Advance(ctx context.Context, j *Job, fn func(*txn.Tx, *Job) (done bool, err error)) error {
	w := sqldb.Write{Owners: []int64{j.Org}, Yields: j.Task.yields()}
	_, err := txn.Write(ctx, bl.db, w, func(t *txn.Tx) (_ struct{}, err error) { return struct{}{}, bl.advance(t, j, fn) })
	return err
}

func (bl *Jobs) advance(t *txn.Tx, j *Job, fn func(*txn.Tx, *Job) (done bool, err error)) (err error) {
	stored, err := scanJob(t.Row(selectJob+"WHERE repo_id = ? AND kind = ? AND ref = ? AND "+isFree,
		j.Repo, string(j.Task), j.Ref, bl.server, t.Now))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a job: %w", err)
	}

	*j = stored
	j.NotBefore = t.Now
	done, err := fn(t, j)
	if err != nil {
		return err
	}
	if err := bl.save(t, j, done); err != nil {
		return fmt.Errorf("save a job: %w", err)
	}
	return nil
}

// save saves how far a job is, and deletes it if it is done.
func (bl *Jobs) save(t *txn.Tx, j *Job, done bool) error {
	switch {
	case done && j.Again:
		j.Position, bl.left.wake = 0, true
	case done && j.NotBefore > t.Now:
		j.Since = j.NotBefore
	case done:
		_, err := t.Exec("DELETE FROM backlog WHERE repo_id = ? AND kind = ? AND ref = ?", j.Repo, string(j.Task), j.Ref)
		return err
	}
	held := ledger.Time(0)
	if !done {
		held = t.Now.Add(leaseTime)
	}
	_, err := t.Exec(`
UPDATE backlog SET position = ?, again = ?, since = ?, not_before = ?, tries = 0, error = '', holder = ?, held_until = ?
WHERE repo_id = ? AND kind = ? AND ref = ?`,
		j.Position, j.Again && !done, j.Since, j.NotBefore, bl.server, held, j.Repo, string(j.Task), j.Ref)
	return err
}

// Times that a job waits after a turn that failed: twice as long after each.
const (
	minWait = time.Second
	maxWait = 5 * time.Minute
)

// putOff notes that a turn of a job has failed, and when the next one is. Other jobs do not wait for it.
func (bl *Jobs) putOff(ctx context.Context, j *Job, reason error) error {
	wait := min(minWait<<min(j.tries, 20), maxWait)
	return bl.db.WriteFor(ctx, []int64{j.Org}, func(t *txn.Tx) error {
		_, err := t.Exec(`
UPDATE backlog SET tries = tries + 1, error = ?, not_before = ?, held_until = 0
WHERE repo_id = ? AND kind = ? AND ref = ?`, clip(reason.Error()), t.Now.Add(wait), j.Repo, string(j.Task), j.Ref)
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
