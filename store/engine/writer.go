package engine

import (
	"cmp"
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

// Transactions begins and ends the transactions of a Writer. Its methods are called in the
// goroutine of the writer.
type Transactions interface {
	// Begin begins a transaction that locks some orgs, and returns its connection. It must not
	// wait for long: if its error has the class Locked, the writer tries again.
	Begin(sqldb.Locks) (*sqldb.Conn, error)
	// Commit commits the transaction.
	Commit(*sqldb.Conn) error
	// Rollback undoes a transaction that failed with err, even if the database has already done
	// so. It returns the error for those who wait for its writes.
	Rollback(c *sqldb.Conn, err error) error
	// IsOfDatabase reports whether an error of a write is one of the database, which may have
	// ended the whole transaction.
	IsOfDatabase(err error) bool
}

// A Writer runs the writes that are queued as one batch, in one transaction. If more are queued than fit, orgs take
// turns. Each write has its own savepoint, or shares one with adjacent writes of its
// set. One fsync commits the whole batch.
type Writer struct {
	// Patience is how long a write waits for the lock that another process holds. StalledAfter is
	// how long a write may wait before the engine is not ready. Tests shorten them.
	Patience, StalledAfter time.Duration

	tx       Transactions
	hooks    sqldb.Hooks
	health   *Health
	throttle *throttle
	queue    *jobQueue
	between  chan func()   // run between two transactions
	stop     chan struct{} // closed by Close, to accept no more writes
	done     chan struct{} // closed by run when it returns

	oldest   atomic.Int64 // when the oldest job of the batch was queued, by the queue's clock; 0 if idle
	refusing atomic.Bool  // whether new writes fail at once, because another process holds the lock for long
}

// NewWriter starts a writer, which runs until Close returns.
func NewWriter(tx Transactions, hooks sqldb.Hooks, h *Health) *Writer {
	if hooks.Committed == nil {
		hooks.Committed = func(sqldb.Commit) {}
	}
	w := &Writer{
		Patience:     lockPatience,
		StalledAfter: stalledAfter,

		tx:       tx,
		hooks:    hooks,
		health:   h,
		throttle: newThrottle(),
		queue:    newJobQueue(),
		between:  make(chan func()),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go w.run()
	return w
}

// errLocked is the error of writes that begin while another process has held the lock
// for long.
var errLocked = &sqldb.Error{Class: sqldb.Locked, Err: errors.New("another process holds the write lock")}

// Write implements sqldb.Engine.
func (w *Writer) Write(ctx context.Context, request sqldb.Write) error {
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

// TryWrite implements sqldb.Engine.
func (w *Writer) TryWrite(request sqldb.Write) bool {
	if w.refusing.Load() {
		return false
	}
	_, ok := w.queue.push(w.queue.newJob(context.Background(), request))
	return ok
}

// WaitTurn implements sqldb.Engine.
func (w *Writer) WaitTurn(ctx context.Context) error { return w.throttle.wait(ctx) }

// Between runs fn in the goroutine of the writer, between two transactions. It returns false
// if the writer does not get to it within the time.
func (w *Writer) Between(limit time.Duration, fn func()) bool {
	ran := make(chan struct{})
	select {
	case w.between <- func() { defer close(ran); fn() }:
		<-ran
		return true
	case <-time.After(limit):
		return false
	case <-w.stop:
		return false
	}
}

// Waited returns how long the oldest write has been waiting, or 0 if no write is waiting.
func (w *Writer) Waited() time.Duration {
	return max(w.queue.since(w.oldest.Load()), w.queue.since(w.queue.oldest()))
}

// Queued returns the number of writes in the queue.
func (w *Writer) Queued() int {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return w.queue.jobs.size
}

// Close waits for the queued writes and stops the writer.
func (w *Writer) Close() {
	close(w.stop)
	<-w.done
}

func (w *Writer) run() {
	defer close(w.done)
	batch := make([]*job, 0, MaxBatch)
	for {
		select {
		case fn := <-w.between:
			fn()
		default:
		}

		clear(batch)
		batch = w.take(batch[:0])
		if len(batch) == 0 {
			select {
			case fn := <-w.between:
				fn()
				continue
			case <-w.queue.wake:
				continue
			case <-w.stop:
			}
			if batch = w.take(batch); len(batch) == 0 {
				return
			}
		}

		var c *sqldb.Conn
		if batch, c = w.begin(batch); c != nil {
			w.commit(c, batch)
		}
		w.oldest.Store(0)
	}
}

// take takes the next batch from the queue.
func (w *Writer) take(batch []*job) []*job {
	batch = w.queue.take(batch)
	w.setOldest(batch)
	return batch
}

func (w *Writer) setOldest(batch []*job) {
	oldest := int64(0)
	for _, j := range batch {
		if oldest == 0 || j.queued < oldest {
			oldest = j.queued
		}
	}
	w.oldest.Store(oldest)
}

func (w *Writer) stopping() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// begin begins the transaction of a batch. While another process holds the lock, it
// retries without the jobs whose callers have given up. Jobs that have waited for
// w.Patience fail; from then on, new writes are refused until the writer gets the lock.
// begin returns the jobs to run and their connection, which is nil if there is no transaction.
func (w *Writer) begin(batch []*job) ([]*job, *sqldb.Conn) {
	for {
		c, err := w.tx.Begin(locksOf(batch))
		if err == nil {
			w.refusing.Store(false)
			return batch, c
		}
		err = fmt.Errorf("begin: %w", err)
		if sqldb.ClassOf(err) != sqldb.Locked {
			w.health.Failed(sqldb.WriteIncident, err)
			return drop(batch, func(*job) bool { return true }, err), nil
		}

		if batch = w.waitForLock(batch, err); len(batch) == 0 && (!w.refusing.Load() || w.stopping()) {
			return nil, nil
		}
	}
}

// locksOf returns the locks that the jobs of a batch need.
func locksOf(batch []*job) (l sqldb.Locks) {
	for _, j := range batch {
		l.Add(j.Write)
	}
	return l
}

// waitForLock waits a moment, and returns the batch without the jobs that have expired
// or were abandoned. It removes such jobs from the queue, too.
func (w *Writer) waitForLock(batch []*job, err error) []*job {
	time.Sleep(lockPause)
	waited := w.Waited()
	if waited >= min(w.StalledAfter, w.Patience) {
		w.health.Failed(sqldb.WriteIncident, err)
	}
	if waited >= w.Patience {
		w.refusing.Store(true)
	}

	expired := func(j *job) bool { return w.queue.since(j.queued) >= w.Patience }
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
func (w *Writer) commit(c *sqldb.Conn, batch []*job) {
	err := w.transact(c, batch)
	if err != nil {
		w.hooks.AfterRollback() // before another batch can reuse the ids that this one took
		err = w.tx.Rollback(c, err)
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
func (w *Writer) judge(batch []*job, err error) {
	for _, j := range batch {
		switch sqldb.ClassOf(j.err) {
		case sqldb.Full, sqldb.Failing, sqldb.Unreachable:
			err = cmp.Or(err, j.err) // perhaps only this job needed more space
		}
	}
	switch {
	case err == nil:
		w.health.Succeeded(sqldb.WriteIncident)
	case sqldb.ClassOf(err) == sqldb.Gone:
		w.health.Failed(sqldb.FileIncident, err)
	default:
		w.health.Failed(sqldb.WriteIncident, err)
	}
}

// transact runs the batch in the transaction and commits it. If it returns an error,
// the whole batch has failed.
func (w *Writer) transact(c *sqldb.Conn, batch []*job) (err error) {
	begin := time.Now()
	done := sqldb.Commit{Writes: len(batch), Waited: w.Waited()}
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
		if err := w.runJobs(c, jobs); err != nil {
			return err
		}
		if jobs[0].Yields {
			yielding += time.Since(start)
		} else {
			others = true
		}
		rest = rest[len(jobs):]
	}

	if err := w.hooks.BeforeCommit(c); err != nil {
		return err
	}
	syncing := time.Now()
	if err := w.tx.Commit(c); err != nil {
		return err
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
func (w *Writer) runJobs(c *sqldb.Conn, jobs []*job) error {
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

	groupErr, err := w.runOnce(c, live)
	if err != nil {
		return err
	}
	if groupErr == nil || len(live) == 1 {
		live[0].err = groupErr
		return nil
	}

	for _, j := range live {
		if j.err, err = w.runOnce(c, []*job{j}); err != nil {
			return err
		}
	}
	return nil
}

// runOnce runs jobs in one savepoint. It returns the jobs' error, and err if that
// ended the transaction.
func (w *Writer) runOnce(c *sqldb.Conn, jobs []*job) (jobErr, err error) {
	if err := c.Queue("SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("savepoint: %w", err)
	}
	if jobErr = execute(c, jobs); jobErr != nil {
		return jobErr, w.undo(c, jobErr)
	}
	if err := c.Queue("RELEASE SAVEPOINT job"); err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	return nil, nil
}

// undo rolls back to the savepoint after jobErr. If it fails, the transaction has
// ended: SQLite rolls back the whole transaction after some errors, such as a
// full disk.
func (w *Writer) undo(c *sqldb.Conn, jobErr error) error {
	_ = c.Send() // the savepoint may be in the queue; what fails after it is undone
	if err := c.Run("ROLLBACK TO SAVEPOINT job; RELEASE SAVEPOINT job"); err != nil {
		if w.tx.IsOfDatabase(jobErr) {
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
