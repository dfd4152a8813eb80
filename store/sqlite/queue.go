package sqlite

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// maxBatch is the maximum number of writes in one transaction. It bounds how long
	// the first of them waits for the last.
	maxBatch = 256
	// maxQueued is the maximum number of writes of one org in the queue. Its further
	// writes wait outside, so they do not delay those of other orgs.
	maxQueued = maxBatch
)

// A job is one write in the queue. The writer sets err, then closes done.
type job struct {
	sqldb.Write
	ctx  context.Context
	err  error
	done chan struct{}
}

// A jobQueue holds the writes that wait for the writer.
type jobQueue struct {
	wake chan struct{} // has a buffer of 1; receives a value when a job is pushed

	mu   sync.Mutex
	jobs *turnQueue[*job]
	room chan struct{} // closed when jobs are taken
}

func newJobQueue() *jobQueue {
	return &jobQueue{wake: make(chan struct{}, 1), jobs: newTurnQueue[*job](), room: make(chan struct{})}
}

// push adds a job. If too many jobs of its org are waiting, it does not, and returns
// a channel that is closed when the writer takes jobs.
func (q *jobQueue) push(j *job) (room <-chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs.waiting[j.Org]) >= maxQueued {
		return q.room, false
	}
	q.jobs.push(j.Org, j)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil, true
}

// take appends the next jobs to an empty batch, at most maxBatch, without waiting. If
// more are waiting, orgs take turns. In the batch, the jobs of an org are adjacent, so
// that more of them can be written together.
func (q *jobQueue) take(batch []*job) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	order := make(map[string]int, len(q.jobs.orgs))
	for _, org := range q.jobs.orgs {
		order[org] = len(order)
	}

	for len(batch) < maxBatch {
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
		close(q.room)
		q.room = make(chan struct{})
	}
	return batch
}
