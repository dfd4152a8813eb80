package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// maxBatch is how many writes share one transaction at most. It bounds how
// long the first of them waits for the last.
const maxBatch = 256

var errClosed = errors.New("the store is closed")

// A writer owns the one connection that writes. Writes queue; the writer runs
// as many as are waiting in one transaction, each in a savepoint of its own,
// commits, and answers all of them: one fsync serves the batch, and a write
// that fails takes back only itself.
type writer struct {
	conn  *conn
	now   func() time.Time
	ids   *ids
	tally *tally
	names *names
	// notifier tells of an org's events once they are on disk.
	notifier *notifier
	tips     *radarindex.Set // where the radar looks
	recent   radarindex.Recent
	// queued tells of deliveries once they are on disk.
	queued *queued
	// pace tells deliveries when it is their turn.
	pace  *pace
	queue chan *job
	stop  chan struct{} // closed by close: take no more
	done  chan struct{} // closed by run when it has ended
}

// A job is one write on its way. The writer sets err and closes done.
type job struct {
	ctx  context.Context
	fn   func(*tx) error
	err  error
	done chan struct{}
}

// A tx is one write inside the writer's transaction.
type tx struct {
	*conn
	ids     *ids
	now     ledger.Time // the ledger's clock when this write began
	tally   *tally
	deltas  []delta // of this write
	tips    *radarindex.Set
	index   *radarindex.Index // of the repo that the write is about, where it was refreshed for it
	recent  *radarindex.Recent
	named   bool     // whether it has put something into names
	queued  []string // webhooks that it has given deliveries
	changed []string // webhooks that it has changed or deleted
	// delivering says that it is about sending deliveries: these yield to others.
	delivering bool
}

func newWriter(c *conn, now func() time.Time, n *names, tips *radarindex.Set, notifier *notifier, queued *queued) *writer {
	w := &writer{
		conn:     c,
		now:      now,
		ids:      newIDs(),
		tally:    newTally(),
		names:    n,
		tips:     tips,
		notifier: notifier,
		queued:   queued,
		pace:     newPace(),
		queue:    make(chan *job, maxBatch),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	go w.run()
	return w
}

// write runs fn in the writer's next transaction and returns when that is on
// disk, or with the error that took fn's work back. A context that ends before
// fn has begun withdraws it; from then on write waits for the outcome.
func (w *writer) write(ctx context.Context, fn func(*tx) error) error {
	j := &job{ctx: ctx, fn: fn, done: make(chan struct{})}
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stop:
		return errClosed
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
			return errClosed
		}
	}
}

// tryWrite queues fn if there is room, which it reports, and does not wait for it.
func (w *writer) tryWrite(fn func(*tx) error) bool {
	select {
	case w.queue <- &job{ctx: context.Background(), fn: fn, done: make(chan struct{})}:
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

// gather adds to the batch what is waiting already.
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
	w.tally.reset()
	w.recent = radarindex.Recent{}
	w.names.clear() // before others can take the ids that were given
	// The failure may have ended the transaction already.
	w.conn.execOnce("ROLLBACK")
	err = storageError(err)
	for _, j := range batch {
		j.err = err
	}
}

func (w *writer) transact(batch []*job) error {
	begin := time.Now()
	var deliveries time.Duration
	others := false
	defer func() { w.pace.note(begin, time.Now(), deliveries, others) }()
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, j := range batch {
		if j.err = j.ctx.Err(); j.err != nil {
			continue
		}
		start := time.Now()
		delivering, err := w.runOne(j)
		if err != nil {
			return err
		}
		if delivering {
			deliveries += time.Since(start)
		} else {
			others = true
		}
	}
	if err := w.tally.flush(w.conn); err != nil {
		return err
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for orgID := range w.tally.seqs {
		w.notifier.notify(orgID)
	}
	w.queued.add(w.tally.queued, w.tally.changed)
	w.tally.reset()
	return nil
}

// runOne runs one job in a savepoint, and tells whether it was about sending
// deliveries. The error it returns is the transaction's; the job's own goes
// into the job.
func (w *writer) runOne(j *job) (delivering bool, err error) {
	if _, err := w.conn.exec("SAVEPOINT job"); err != nil {
		return false, fmt.Errorf("savepoint: %w", err)
	}
	t := &tx{conn: w.conn, ids: w.ids, now: ledger.TimeOf(w.now()), tally: w.tally, tips: w.tips, recent: &w.recent}
	if j.err = run(j.fn, t); j.err != nil {
		return t.delivering, w.takeBack(j, t)
	}
	w.tally.add(t)
	if _, err := w.conn.exec("RELEASE job"); err != nil {
		return t.delivering, fmt.Errorf("release: %w", err)
	}
	return t.delivering, nil
}

// takeBack undoes what a job did that has failed. Where that cannot be done,
// the job's error is the transaction's: a full disk makes SQLite end the whole
// of it by itself.
func (w *writer) takeBack(j *job, t *tx) error {
	if t.named {
		w.names.clear()
	}
	w.recent = radarindex.Recent{} // the numbers of its tips are given again
	if err := w.conn.execOnce("ROLLBACK TO job; RELEASE job"); err != nil {
		if _, ok := errors.AsType[*sqlite.Error](j.err); ok {
			return j.err
		}
		return fmt.Errorf("take back a write: %w", err)
	}
	j.err = storageError(j.err)
	return nil
}

// run calls fn and turns a panic into an error, so that a fault in one write
// does not take the others and the process with it.
func run(fn func(*tx) error, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(t)
}
