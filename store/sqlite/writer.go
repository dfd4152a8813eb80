package sqlite

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A writer owns the only connection that writes. It runs the writes that are
// queued as one batch, in one transaction. If more are queued than fit, orgs take
// turns. Each write has its own savepoint, or shares one with adjacent writes of its
// set. One fsync commits the whole batch.
type writer struct {
	conn     *sqldb.Conn
	hooks    sqldb.Hooks
	throttle *throttle
	queue    *jobQueue
	stop     chan struct{} // closed by close, to accept no more writes
	done     chan struct{} // closed by run when it returns
}

func newWriter(c *sqldb.Conn, hooks sqldb.Hooks) *writer {
	w := &writer{
		conn:     c,
		hooks:    hooks,
		throttle: newThrottle(),
		queue:    newJobQueue(),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go w.run()
	return w
}

// write implements DB.Write.
func (w *writer) write(ctx context.Context, request sqldb.Write) error {
	j := &job{Write: request, ctx: ctx, done: make(chan struct{})}
	for {
		room, ok := w.queue.push(j)
		if ok {
			break
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.stop:
			return sqldb.ErrClosed
		}
	}

	select {
	case <-j.done:
		return j.err
	case <-w.done:
		// The writer has ended, but it may have run the job first.
		select {
		case <-j.done:
			return j.err
		default:
			return sqldb.ErrClosed
		}
	}
}

// tryWrite implements DB.TryWrite.
func (w *writer) tryWrite(request sqldb.Write) bool {
	_, ok := w.queue.push(&job{Write: request, ctx: context.Background(), done: make(chan struct{})})
	return ok
}

// close waits for the queued writes and stops the writer.
func (w *writer) close() {
	close(w.stop)
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	batch := make([]*job, 0, maxBatch)
	for {
		clear(batch)
		batch = w.queue.take(batch[:0])
		if len(batch) == 0 {
			select {
			case <-w.queue.wake:
				continue
			case <-w.stop:
			}
			if batch = w.queue.take(batch); len(batch) == 0 {
				return
			}
		}

		w.commit(batch)
		for _, j := range batch {
			close(j.done)
		}
	}
}

// commit runs the batch in one transaction and sets the err of each job.
func (w *writer) commit(batch []*job) {
	err := w.transact(batch)
	if err == nil {
		return
	}
	w.hooks.AfterRollback()    // before another batch can reuse the ids that this one took
	_ = w.conn.Run("ROLLBACK") // fails if SQLite has already rolled back
	for _, j := range batch {
		j.err = err
	}
}

// transact runs the batch in one transaction and commits it. If it returns an
// error, the whole batch has failed.
func (w *writer) transact(batch []*job) error {
	begin := time.Now()
	var yielding time.Duration
	others := false
	defer func() { w.throttle.observe(begin, time.Now(), yielding, others) }()

	if _, err := w.conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for rest := batch; len(rest) > 0; {
		start := time.Now()
		jobs := nextGroup(rest)
		if err := w.runJobs(jobs); err != nil {
			return err
		}
		if jobs[0].Yields {
			yielding += time.Since(start)
		} else {
			others = true
		}
		rest = rest[len(jobs):]
	}

	if err := w.hooks.BeforeCommit(w.conn); err != nil {
		return err
	}
	if _, err := w.conn.Exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	w.hooks.AfterCommit()
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
func (w *writer) runJobs(jobs []*job) error {
	live := make([]*job, 0, len(jobs))
	for _, j := range jobs {
		if j.err = j.ctx.Err(); j.err == nil {
			live = append(live, j)
		}
	}
	if len(live) == 0 {
		return nil
	}

	groupErr, err := w.runOnce(live)
	if err != nil {
		return err
	}
	if groupErr == nil || len(live) == 1 {
		live[0].err = groupErr
		return nil
	}

	for _, j := range live {
		if j.err, err = w.runOnce([]*job{j}); err != nil {
			return err
		}
	}
	return nil
}

// runOnce runs jobs in one savepoint. It returns the jobs' error, and err if that
// ended the transaction.
func (w *writer) runOnce(jobs []*job) (jobErr, err error) {
	if _, err := w.conn.Exec("SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	if jobErr = execute(w.conn, jobs); jobErr != nil {
		return jobErr, w.undo(jobErr)
	}
	if _, err := w.conn.Exec("RELEASE job"); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return nil, nil
}

// undo rolls back to the savepoint after jobErr. If it fails, the transaction has
// ended: SQLite rolls back the whole transaction after some errors, such as a
// full disk.
func (w *writer) undo(jobErr error) error {
	if err := w.conn.Run("ROLLBACK TO job; RELEASE job"); err != nil {
		if isSQLite(jobErr) {
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
		return jobs[0].Do(c)
	}
	items := make([]any, len(jobs))
	for i, j := range jobs {
		items[i] = j.Item
	}
	return jobs[0].Set.WriteAll(c, items)
}
