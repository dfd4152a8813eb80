package engine

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Transactions begins and ends the transactions of a Writer. Its methods are called in the
// goroutine of the writer.
type Transactions interface {
	// Begin begins a transaction for writes, and returns its connection, and those of the writes that it
	// leaves to the next transaction. It must not wait for long: if its error has the class Locked, the
	// writer tries again.
	Begin(writes []*sqldb.Write) (c *sqldb.Conn, later []*sqldb.Write, err error)
	// Commit commits the transaction.
	Commit(*sqldb.Conn) error
	// Rollback undoes a transaction that failed with err, even if the database has already done
	// so. It returns the error for those who wait for its writes.
	Rollback(c *sqldb.Conn, err error) error
	// IsOfDatabase reports whether an error of a write is one of the database, which may have
	// ended the whole transaction.
	IsOfDatabase(err error) bool
}

// A runner runs the jobs of a batch in a transaction.
type runner struct {
	tx       Transactions
	hooks    sqldb.Hooks
	throttle *throttle
}

// run runs the batch in the transaction and commits it. If it returns an error, the whole
// batch has failed. done is what is known of the transaction.
func (r *runner) run(c *sqldb.Conn, batch []*job, done sqldb.Commit) (err error) {
	begin := time.Now()
	var yielding time.Duration
	others := false
	defer func() {
		r.throttle.observe(begin, time.Now(), yielding, others)
		done.Took, done.Failed = time.Since(begin), err != nil
		r.hooks.Committed(done)
	}()

	for rest := batch; len(rest) > 0; {
		start := time.Now()
		jobs := nextGroup(rest)
		if err := r.runJobs(c, jobs); err != nil {
			return err
		}
		if jobs[0].Yields {
			yielding += time.Since(start)
		} else {
			others = true
		}
		rest = rest[len(jobs):]
	}

	if err := r.hooks.BeforeCommit(c); err != nil {
		return err
	}
	syncing := time.Now()
	if err := r.tx.Commit(c); err != nil {
		return err
	}
	done.Synced = time.Since(syncing)
	r.hooks.AfterCommit()
	return nil
}

// nextGroup returns the jobs at the start of batch that are written together:
// adjacent jobs of one set, or a single job.
func nextGroup(batch []*job) []*job {
	n := 1
	for n < len(batch) && batch[0].Set != nil && batch[n].Set == batch[0].Set {
		n++
	}
	return batch[:n]
}

// runJobs runs a group of jobs. It sets the err of each job that fails, and
// returns an error if the whole transaction has failed.
func (r *runner) runJobs(c *sqldb.Conn, jobs []*job) error {
	live := make([]*job, 0, len(jobs))
	for _, j := range jobs {
		if !j.claim() {
			continue
		}
		if j.err = j.ctx.Err(); j.err == nil {
			live = append(live, j)
		}
	}
	if len(live) == 0 {
		return nil
	}

	groupErr, err := r.runOnce(c, live)
	if err != nil {
		return err
	}
	if groupErr == nil || len(live) == 1 {
		live[0].err = groupErr
		return nil
	}

	for _, j := range live {
		if j.err, err = r.runOnce(c, []*job{j}); err != nil {
			return err
		}
	}
	return nil
}

// runOnce runs jobs in one savepoint. It returns the jobs' error, and err if that
// ended the transaction.
func (r *runner) runOnce(c *sqldb.Conn, jobs []*job) (jobErr, err error) {
	if err := c.Queue("SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	if jobErr = execute(c, jobs); jobErr != nil {
		return jobErr, r.undo(c, jobErr)
	}
	if err := c.Queue("RELEASE SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return nil, nil
}

// undo rolls back to the savepoint after jobErr. If it fails, the transaction has
// ended: SQLite rolls back the whole transaction after some errors, such as a
// full disk.
func (r *runner) undo(c *sqldb.Conn, jobErr error) error {
	_ = c.Send() // the savepoint may be in the queue; what fails after it is undone
	if err := c.Run("ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job"); err != nil {
		if r.tx.IsOfDatabase(jobErr) {
			return jobErr
		}
		return fmt.Errorf("roll back to savepoint: %w", err)
	}
	return nil
}

// execute executes a group of jobs. It turns a panic into an error, so that one
// faulty write does not crash the process.
func execute(c *sqldb.Conn, jobs []*job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	if jobs[0].Set == nil {
		err = jobs[0].Do(c)
	} else {
		items := make([]any, len(jobs))
		for i, j := range jobs {
			items[i] = j.Item
		}
		err = jobs[0].Set.WriteAll(c, items)
	}
	if err != nil {
		return err
	}
	return c.Send()
}
