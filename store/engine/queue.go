package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// MaxBatch is the maximum number of writes in one transaction. It bounds how long
	// the first of them waits for the last.
	MaxBatch = 256
	// MaxQueued is the maximum number of writes of one org in the queue. Its further
	// writes wait outside, so they do not delay those of other orgs.
	MaxQueued = MaxBatch
)

// A job is one write in the queue.
type job struct {
	sqldb.Write
	ctx    context.Context
	queued int64 // when it came, by the clock of the queue
	state  atomic.Int32
	err    error // set before done is closed
	done   chan struct{}
}

// The states of a job. The writer and the caller race for a job that is waiting: the
// writer to run it, and the caller to abandon it.
const (
	waiting int32 = iota
	running
	abandoned
)

// claim reports whether the job is the writer's: its caller has not abandoned it.
func (j *job) claim() bool {
	return j.state.CompareAndSwap(waiting, running) || j.state.Load() == running
}

// abandon reports whether the caller may leave: the writer has not begun the job.
func (j *job) abandon() bool { return j.state.CompareAndSwap(waiting, abandoned) }

func (j *job) isAbandoned() bool { return j.state.Load() == abandoned }

// end ends the job with an error or nil, unless it was abandoned. Only the writer may
// call it.
func (j *job) end(err error) {
	if j.claim() {
		j.err = err
		close(j.done)
	}
}

// A jobQueue holds the writes that wait for the writer.
type jobQueue struct {
	begun time.Time
	wake  chan struct{} // has a buffer of 1; receives a value when a job is pushed

	mu   sync.Mutex
	jobs *turnQueue[*job]
	room chan struct{} // closed when jobs are taken
}

func newJobQueue() *jobQueue {
	return &jobQueue{
		begun: time.Now(), wake: make(chan struct{}, 1), jobs: newTurnQueue[*job](), room: make(chan struct{}),
	}
}

// newJob returns a job that comes now.
func (q *jobQueue) newJob(ctx context.Context, w sqldb.Write) *job {
	return &job{Write: w, ctx: ctx, queued: int64(time.Since(q.begun)), done: make(chan struct{})}
}

// since returns the time since a moment of the queue's clock, which is monotonic. It
// returns 0 for 0, which is no moment.
func (q *jobQueue) since(moment int64) time.Duration {
	if moment == 0 {
		return 0
	}
	return time.Since(q.begun) - time.Duration(moment)
}

// oldest returns when the oldest job in the queue came, or 0 if the queue is empty.
func (q *jobQueue) oldest() (moment int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, jobs := range q.jobs.waiting {
		if first := jobs[0].queued; moment == 0 || first < moment {
			moment = first
		}
	}
	return moment
}

// push adds a job. If too many jobs of its org are waiting, it does not, and returns
// a channel that is closed when the writer takes jobs.
func (q *jobQueue) push(j *job) (room <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs.waiting[j.Org]) >= MaxQueued {
		return q.room, false
	}
	q.jobs.push(j.Org, j)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil, true
}

// take appends the next jobs to a batch, which then has at most MaxBatch, without waiting. If
// more are waiting, orgs take turns. In the batch, the jobs of an org are adjacent, so
// that more of them can be written together.
func (q *jobQueue) take(batch []*job) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	order := make(map[string]int, len(q.jobs.orgs))
	for _, org := range q.jobs.orgs {
		order[org] = len(order)
	}

	for len(batch) < MaxBatch {
		j, ok := q.jobs.pop()
		if !ok {
			break
		}
		batch = append(batch, j)
	}
	if len(order) > 1 {
		slices.SortStableFunc(batch, func(a, b *job) int { return cmp.Compare(order[a.Org], order[b.Org]) })
	}

	if len(batch) > 0 {
		q.makeRoom()
	}
	return batch
}

// removeIf removes the jobs that meet a condition, and returns them.
func (q *jobQueue) removeIf(condition func(*job) bool) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	removed := q.jobs.removeIf(condition)
	if len(removed) > 0 {
		q.makeRoom()
	}
	return removed
}

// makeRoom wakes the callers whose jobs had no room.
func (q *jobQueue) makeRoom() {
	close(q.room)
	q.room = make(chan struct{})
}
