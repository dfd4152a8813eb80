package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// A Writer runs the writes that are queued as one batch, in one transaction. If more are queued than fit, orgs take
// turns. Each write has its own savepoint, or shares one with adjacent writes of its
// set. One fsync commits the whole batch.
type Writer struct {
	// Patience is how long a write waits for the lock that another process holds. StalledAfter is
	// how long a write may wait before the engine is not ready. Tests shorten them.
	Patience, StalledAfter time.Duration

	runner
	health  *Health
	queue   *jobQueue
	between chan func()   // run between two transactions
	held    []*job        // jobs that a transaction has left to the next; only loop uses it
	stop    chan struct{} // closed by Close, to accept no more writes
	done    chan struct{} // closed by loop when it returns

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

		runner:  runner{tx, hooks, newThrottle()},
		health:  h,
		queue:   newJobQueue(),
		between: make(chan func()),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	go w.loop()
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

func (w *Writer) loop() {
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

		began := time.Now()
		var c *sqldb.Conn
		if batch, c = w.begin(batch); c != nil {
			w.commit(c, batch, time.Since(began))
		}
		w.setOldest(w.held)
	}
}

// take takes the next batch: the jobs that were held back, and then those of the queue.
func (w *Writer) take(batch []*job) []*job {
	w.held = drop(w.held, w.hasExpired, errLocked)
	batch = w.queue.take(append(batch, w.held...))
	clear(w.held)
	w.held = w.held[:0]
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
// retries without the jobs whose callers have given up, and with those that came in the meantime.
// Jobs that have waited for w.Patience fail; from then on, new writes are refused until the writer
// gets the lock. begin returns the jobs to run and their connection, which is nil if there is no
// transaction.
func (w *Writer) begin(batch []*job) ([]*job, *sqldb.Conn) {
	for {
		c, later, err := w.tx.Begin(writesOf(batch))
		if err == nil {
			w.refusing.Store(false)
			return w.holdBack(batch, later), c
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

// writesOf returns the writes of a batch.
func writesOf(batch []*job) []*sqldb.Write {
	writes := make([]*sqldb.Write, len(batch))
	for i, j := range batch {
		writes[i] = &j.Write
	}
	return writes
}

// holdBack returns the batch without the jobs of some writes, which are in the next batch.
func (w *Writer) holdBack(batch []*job, later []*sqldb.Write) []*job {
	if len(later) == 0 {
		return batch
	}
	return slices.DeleteFunc(batch, func(j *job) bool {
		if !slices.Contains(later, &j.Write) {
			return false
		}
		w.held = append(w.held, j)
		return true
	})
}

// hasExpired reports whether a job has waited for too long for the lock.
func (w *Writer) hasExpired(j *job) bool { return w.queue.since(j.queued) >= w.Patience }

// waitForLock waits a moment, and returns the batch without the jobs that have expired
// or were abandoned, and with those that came. It removes such jobs from the queue, too.
func (w *Writer) waitForLock(batch []*job, err error) []*job {
	time.Sleep(lockPause)
	waited := w.Waited()
	if waited >= min(w.StalledAfter, w.Patience) {
		w.health.Failed(sqldb.WriteIncident, err)
	}
	if waited >= w.Patience {
		w.refusing.Store(true)
	}

	w.held = append(w.held, drop(batch, w.hasExpired, err)...)
	drop(w.queue.removeIf(func(j *job) bool { return w.hasExpired(j) || j.isAbandoned() }), w.hasExpired, err)
	return w.take(batch[:0])
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
// jobs. locked is how long it took to begin.
func (w *Writer) commit(c *sqldb.Conn, batch []*job, locked time.Duration) {
	err := w.run(c, batch, sqldb.Commit{Writes: len(batch), Waited: w.Waited(), Locked: locked})
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
	case err == nil && sqldb.ClassOf(w.health.Failing(sqldb.WriteIncident)) == sqldb.Full && !hasProbe(batch):
		// Other writes may still need more space.
	case err == nil:
		w.health.Succeeded(sqldb.WriteIncident)
	case sqldb.ClassOf(err) == sqldb.Gone:
		w.health.Failed(sqldb.FileIncident, err)
	default:
		w.health.Failed(sqldb.WriteIncident, err)
	}
}

func hasProbe(batch []*job) bool {
	return slices.ContainsFunc(batch, func(j *job) bool { return j.Probe })
}
