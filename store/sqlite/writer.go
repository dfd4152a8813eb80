package sqlite

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// maxBatch is how many writes share one transaction at most. It bounds how
// long the first of them waits for the last.
const maxBatch = 256

// A writer owns the one connection that writes. Writes queue; the writer runs
// as many as are waiting in one transaction, each in a savepoint of its own or
// together with others of its set, commits, and answers all of them: one fsync
// serves the batch.
type writer struct {
	conn  *sqldb.Conn
	hooks sqldb.Hooks
	pace  *pace
	queue chan *job
	stop  chan struct{} // closed by close: accept no more
	done  chan struct{} // closed by run when it has ended
}

// A job is one write in the queue. The writer sets err and closes done.
type job struct {
	sqldb.Write
	ctx  context.Context
	err  error
	done chan struct{}
}

func newWriter(c *sqldb.Conn, hooks sqldb.Hooks) *writer {
	w := &writer{
		conn:  c,
		hooks: hooks,
		pace:  newPace(),
		queue: make(chan *job, maxBatch),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	go w.run()
	return w
}

// write implements DB.Write.
func (w *writer) write(ctx context.Context, what sqldb.Write) error {
	j := &job{Write: what, ctx: ctx, done: make(chan struct{})}
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stop:
		return sqldb.ErrClosed
	}
	select {
	case <-j.done:
		return j.err
	case <-w.done:
		// The writer has ended; it may have answered just before.
		select {
		case <-j.done:
			return j.err
		default:
			return sqldb.ErrClosed
		}
	}
}

// tryWrite implements DB.TryWrite.
func (w *writer) tryWrite(what sqldb.Write) bool {
	select {
	case w.queue <- &job{Write: what, ctx: context.Background(), done: make(chan struct{})}:
		return true
	default:
		return false
	}
}

// close lets the writes that are queued finish and ends the writer.
func (w *writer) close() {
	close(w.stop)
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	batch := make([]*job, 0, maxBatch)
	for {
		clear(batch)
		batch = batch[:0]
		select {
		case j := <-w.queue:
			batch = append(batch, j)
		case <-w.stop:
			if len(w.queue) == 0 {
				return
			}
		}
		batch = w.gather(batch)
		w.commit(batch)
		for _, j := range batch {
			close(j.done)
		}
	}
}

// gather adds to the batch the writes that wait already.
func (w *writer) gather(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-w.queue:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction and sets each job's err.
func (w *writer) commit(batch []*job) {
	err := w.transact(batch)
	if err == nil {
		return
	}
	w.hooks.AfterRollback() // before others can get the ids that were given
	// The failure may have ended the transaction already.
	_ = w.conn.Run("ROLLBACK")
	for _, j := range batch {
		j.err = err
	}
}

func (w *writer) transact(batch []*job) error {
	begin := time.Now()
	var yielding time.Duration
	others := false
	defer func() { w.pace.note(begin, time.Now(), yielding, others) }()
	if _, err := w.conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for rest := batch; len(rest) > 0; {
		start := time.Now()
		jobs := together(rest)
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

// together returns the jobs at the beginning of batch that are written at once:
// those of one set, or a single one.
func together(batch []*job) []*job {
	n := 1
	for n < len(batch) && batch[0].Set != nil && batch[n].Set == batch[0].Set {
		n++
	}
	return batch[:n]
}

// runJobs runs jobs that are written at once. The error it returns is the
// transaction's; a job's own goes into the job.
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
	failed, err := w.runOnce(live)
	if err != nil {
		return err
	}
	if failed == nil || len(live) == 1 {
		live[0].err = failed
		return nil
	}
	for _, j := range live {
		if j.err, err = w.runOnce([]*job{j}); err != nil {
			return err
		}
	}
	return nil
}

// runOnce runs jobs in one savepoint. It returns why they failed, and an error
// if that ended the transaction.
func (w *writer) runOnce(jobs []*job) (failed, err error) {
	if _, err := w.conn.Exec("SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	if failed = do(w.conn, jobs); failed != nil {
		return failed, w.undo(failed)
	}
	if _, err := w.conn.Exec("RELEASE job"); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return nil, nil
}

// undo undoes what was done since the savepoint. If that is impossible the
// transaction has ended: SQLite ends it by itself when the disk is full.
func (w *writer) undo(failed error) error {
	if err := w.conn.Run("ROLLBACK TO job; RELEASE job"); err != nil {
		if isSQLite(failed) {
			return failed
		}
		return fmt.Errorf("undo a write: %w", err)
	}
	return nil
}

// do carries out jobs, and turns a panic into an error, so that a fault in one
// write does not end the process and the others with it.
func do(c *sqldb.Conn, jobs []*job) (err error) {
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
