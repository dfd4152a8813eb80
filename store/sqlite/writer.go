package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// stalledAfter is how long a write, or a check of the files, may take before the
	// engine is not ready.
	stalledAfter = 5 * time.Second
	// lockPatience is how long a write waits for the lock that another process holds.
	lockPatience = 10 * time.Second
	// lockPause is the pause between two attempts to get the lock, in addition to the
	// busy timeout of the connection.
	lockPause = 5 * time.Millisecond
)

// A writer owns the only connection that writes. It runs the writes that are
// queued as one batch, in one transaction. If more are queued than fit, orgs take
// turns. Each write has its own savepoint, or shares one with adjacent writes of its
// set. One fsync commits the whole batch.
type writer struct {
	conn     *sqldb.Conn
	hooks    sqldb.Hooks
	guard    *guard
	health   *health
	throttle *throttle
	patience time.Duration // lockPatience, or less in tests
	queue    *jobQueue
	between  chan func(*sqldb.Conn) // run between two transactions
	stop     chan struct{}          // closed by close, to accept no more writes
	done     chan struct{}          // closed by run when it returns

	oldest   atomic.Int64 // when the oldest job of the batch was queued, by the queue's clock; 0 if idle
	refusing atomic.Bool  // whether new writes fail at once, because another process holds the lock for long
}

// newWriter returns a writer on c, which it owns until close returns.
func newWriter(c *sqldb.Conn, hooks sqldb.Hooks, g *guard, h *health) *writer {
	if hooks.Committed == nil {
		hooks.Committed = func(sqldb.Commit) {}
	}
	w := &writer{
		conn:     c,
		hooks:    hooks,
		guard:    g,
		health:   h,
		throttle: newThrottle(),
		patience: lockPatience,
		queue:    newJobQueue(),
		between:  make(chan func(*sqldb.Conn)),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go w.run()
	return w
}

// errLocked is the error of writes that begin while another process has held the lock
// for long.
var errLocked = &sqldb.Error{Class: sqldb.Locked, Err: errors.New("another process holds the write lock")}

// write implements DB.Write.
func (w *writer) write(ctx context.Context, request sqldb.Write) error {
	j := w.queue.newJob(ctx, request)
	for {
		if w.refusing.Load() {
			return errLocked
		}
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
	case <-ctx.Done():
		if j.abandon() {
			return ctx.Err()
		}
	case <-w.done:
	}

	// The writer is running the job, or has ended.
	select {
	case <-j.done:
		return j.err
	case <-w.done:
	}
	select {
	case <-j.done: // the writer ran the job before it ended
		return j.err
	default:
		return sqldb.ErrClosed
	}
}

// tryWrite implements DB.TryWrite.
func (w *writer) tryWrite(request sqldb.Write) bool {
	if w.refusing.Load() {
		return false
	}
	_, ok := w.queue.push(w.queue.newJob(context.Background(), request))
	return ok
}

// probe queues a write that changes nothing but goes through the log, to find out
// whether writing works. It is not needed if other writes are waiting.
func (w *writer) probe() {
	if w.waited() > 0 {
		return
	}
	w.tryWrite(sqldb.Write{Do: rewriteVersion})
}

// betweenWrites runs fn on the writer's connection, between two transactions. It
// returns false if the writer does not get to it within the time.
func (w *writer) betweenWrites(limit time.Duration, fn func(*sqldb.Conn)) bool {
	ran := make(chan struct{})
	select {
	case w.between <- func(c *sqldb.Conn) { defer close(ran); fn(c) }:
		<-ran
		return true
	case <-time.After(limit):
		return false
	case <-w.stop:
		return false
	}
}

// waited returns how long the oldest write has been waiting, or 0 if no write is waiting.
func (w *writer) waited() time.Duration {
	return max(w.queue.since(w.oldest.Load()), w.queue.since(w.queue.oldest()))
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
		select {
		case fn := <-w.between:
			fn(w.conn)
		default:
		}

		clear(batch)
		batch = w.take(batch[:0])
		if len(batch) == 0 {
			select {
			case fn := <-w.between:
				fn(w.conn)
				continue
			case <-w.queue.wake:
				continue
			case <-w.stop:
			}
			if batch = w.take(batch); len(batch) == 0 {
				return
			}
		}

		var ok bool
		if batch, ok = w.begin(batch); ok {
			w.commit(batch)
		}
		w.oldest.Store(0)
	}
}

// take takes the next batch from the queue.
func (w *writer) take(batch []*job) []*job {
	batch = w.queue.take(batch)
	w.setOldest(batch)
	return batch
}

func (w *writer) setOldest(batch []*job) {
	oldest := int64(0)
	for _, j := range batch {
		if oldest == 0 || j.queued < oldest {
			oldest = j.queued
		}
	}
	w.oldest.Store(oldest)
}

func (w *writer) stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// begin begins the transaction of a batch. While another process holds the lock, it
// retries without the jobs whose callers have given up. Jobs that have waited for
// w.patience fail; from then on, new writes are refused until the writer gets the lock.
// begin returns the jobs to run, and false if there is no transaction.
func (w *writer) begin(batch []*job) ([]*job, bool) {
	for {
		_, err := w.conn.Exec("BEGIN IMMEDIATE")
		if err == nil {
			w.refusing.Store(false)
			return batch, true
		}
		err = fmt.Errorf("begin: %w", err)
		if sqldb.ClassOf(err) != sqldb.Locked {
			w.health.failed(sqldb.WriteIncident, err)
			return drop(batch, func(*job) bool { return true }, err), false
		}

		if batch = w.waitForLock(batch, err); len(batch) == 0 && (!w.refusing.Load() || w.stopping()) {
			return nil, false
		}
	}
}

// waitForLock waits a moment, and returns the batch without the jobs that have expired
// or were abandoned. It removes such jobs from the queue, too.
func (w *writer) waitForLock(batch []*job, err error) []*job {
	time.Sleep(lockPause)
	waited := w.waited()
	if waited >= min(stalledAfter, w.patience) {
		w.health.failed(sqldb.WriteIncident, err)
	}
	if waited >= w.patience {
		w.refusing.Store(true)
	}

	expired := func(j *job) bool { return w.queue.since(j.queued) >= w.patience }
	batch = drop(batch, expired, err)
	drop(w.queue.removeIf(func(j *job) bool { return expired(j) || j.isAbandoned() }), expired, err)
	if len(batch) == 0 {
		return w.take(batch)
	}
	w.setOldest(batch)
	return batch
}

// drop returns the batch without the jobs that were abandoned, and without those that
// have expired, which end with err.
func drop(batch []*job, expired func(*job) bool, err error) []*job {
	return slices.DeleteFunc(batch, func(j *job) bool {
		if expired(j) {
			j.end(err)
			return true
		}
		return j.isAbandoned()
	})
}

// commit runs the batch in the transaction that has begun, commits it, and ends its
// jobs.
func (w *writer) commit(batch []*job) {
	err := w.transact(batch)
	if err != nil {
		w.hooks.AfterRollback()    // before another batch can reuse the ids that this one took
		_ = w.conn.Run("ROLLBACK") // fails if SQLite has already rolled back
		err = takeBack(w.conn, err)
		for _, j := range batch {
			j.err = err
		}
	}
	w.judge(batch, err)
	for _, j := range batch {
		j.end(j.err)
	}
}

// judge records in the health whether the storage could be written.
func (w *writer) judge(batch []*job, err error) {
	for _, j := range batch {
		if class := sqldb.ClassOf(j.err); err == nil && (class == sqldb.Full || class == sqldb.Failing) {
			err = j.err // only this job needed more space
		}
	}
	switch {
	case err == nil:
		w.health.succeeded(sqldb.WriteIncident)
	case sqldb.ClassOf(err) == sqldb.Gone:
		w.health.failed(sqldb.FileIncident, err)
	default:
		w.health.failed(sqldb.WriteIncident, err)
	}
}

// transact runs the batch in the transaction and commits it. If it returns an error,
// the whole batch has failed.
func (w *writer) transact(batch []*job) (err error) {
	begin := time.Now()
	done := sqldb.Commit{Writes: len(batch), Waited: w.waited()}
	var yielding time.Duration
	others := false
	defer func() {
		w.throttle.observe(begin, time.Now(), yielding, others)
		done.Took, done.Failed = time.Since(begin), err != nil
		w.hooks.Committed(done)
	}()

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
	// A commit may also copy the log into the file.
	if err := w.guard.check(); err != nil {
		return err
	}
	syncing := time.Now()
	if _, err := w.conn.Exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	done.Synced = time.Since(syncing)
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
