// Package live sends the events of orgs to the clients that follow them.
package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// feedBatch is the maximum number of events in one read.
	feedBatch = 500
	// feedMemory is the approximate number of bytes of frames that a feed caches
	// for streams that lag a little. Streams that lag more read the database.
	feedMemory = 2 << 20
	// minFeedInterval and maxFeedInterval bound the minimum time between two reads,
	// which is feedIntervalPerStream for each stream. An event that follows a longer
	// idle time is sent immediately. More frequent events are batched. A batch costs a
	// write per stream, so the streams of a busy org take about the same share of the
	// machine, however many there are.
	minFeedInterval       = 20 * time.Millisecond
	feedIntervalPerStream = 100 * time.Microsecond
	maxFeedInterval       = 2 * time.Second
	// portions is the number of portions of a feed's streams. If there are more than
	// atOnce streams, the feed wakes the portions one after the other, in the part of the
	// interval that atOnce streams do not need. So requests do not have to wait for
	// thousands of writes.
	portions = 128
	atOnce   = 1000
	// feedRetry is how long a feed waits after a failed read.
	feedRetry = time.Second
)

// Earliest starts a stream at the org's first event, in place of an event's id.
const Earliest = "earliest"

// Feeds holds the feeds of the orgs that have open streams.
type Feeds struct {
	store *store.Store
	log   *slog.Logger

	mu    sync.Mutex
	byOrg map[int64]*feed // by row id, since another org may get the name
}

// NewFeeds returns the feeds of a ledger. They log to log.
func NewFeeds(s *store.Store, log *slog.Logger) *Feeds {
	return &Feeds{store: s, log: log, byOrg: make(map[int64]*feed)}
}

// Len returns the number of orgs that have open streams.
func (f *Feeds) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byOrg)
}

// A feed is a cache of the latest events of one org. It reads and encodes each
// event once for all of the org's streams.
type feed struct {
	*store.Tail
	log    *slog.Logger
	memory int // feedMemory, except in tests

	streams atomic.Int64       // number of streams; only changed with Feeds.mu held
	joined  int                // number of streams that have acquired the feed; guarded by Feeds.mu
	stop    context.CancelFunc // ends run
	stopped chan struct{}      // closed when run has ended

	mu     sync.Mutex
	chunks []*chunk                // latest chunks, oldest first, without gaps
	size   int                     // of the chunks' frames, in bytes
	next   int64                   // sequence number after the last chunk
	grown  [portions]chan struct{} // closed to wake a portion; nil if none of its streams waits
}

// acquire returns the org's feed, and the portion of its streams to which the new one
// belongs. It starts the feed if necessary. The caller must release it.
func (f *Feeds) acquire(ctx context.Context, org string) (fd *feed, portion int, err error) {
	tail, err := f.store.Tail(ctx, org)
	if err != nil {
		return nil, 0, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if fd = f.byOrg[tail.Org()]; fd == nil {
		if fd, err = f.start(ctx, tail); err != nil {
			return nil, 0, err
		}
		f.byOrg[tail.Org()] = fd
	}
	fd.streams.Add(1)
	fd.joined++
	return fd, fd.joined % portions, nil
}

// start starts a feed, which runs until the last stream releases it.
func (f *Feeds) start(ctx context.Context, tail *store.Tail) (*feed, error) {
	next, err := tail.Next(ctx)
	if err != nil {
		return nil, err
	}

	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	fd := &feed{Tail: tail, log: f.log, memory: feedMemory, stop: stop, next: next, stopped: make(chan struct{})}
	go fd.run(run)
	return fd, nil
}

// release ends a stream's use of a feed. If it was the last stream, release stops
// the feed and waits until it has ended.
func (f *Feeds) release(fd *feed) {
	f.mu.Lock()
	last := fd.streams.Add(-1) == 0
	if last {
		delete(f.byOrg, fd.Org())
	}
	f.mu.Unlock()

	if last {
		fd.stop()
		<-fd.stopped
	}
}

// run adds new events to the feed until ctx is done.
func (f *feed) run(ctx context.Context) {
	defer close(f.stopped)
	for failing := false; ; {
		changed, start, before := f.Changed(), time.Now(), f.next // only run changes next
		more, err := f.catchUp(ctx)
		if err != nil && ctx.Err() == nil {
			if !failing && wire.Explain(err).Code != ledger.CodeStorageUnavailable { // which the store logs
				f.log.ErrorContext(ctx, "reading events for the stream", "error", err)
			}
			changed = nil // retry after feedRetry
		}
		failing = err != nil
		interval := minFeedInterval
		if f.next > before {
			interval = f.interval()
			f.wake(ctx)
		}

		if !more {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			case <-after(changed == nil, feedRetry):
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(start.Add(interval))):
		}
	}
}

// interval returns the minimum time between two reads, if the first one found events.
func (f *feed) interval() time.Duration {
	return min(max(minFeedInterval, time.Duration(f.streams.Load())*feedIntervalPerStream), maxFeedInterval)
}

// wake wakes the streams that wait for events. It takes a part of the interval.
func (f *feed) wake(ctx context.Context) {
	start, spread := time.Now(), max(0, f.interval()-atOnce*feedIntervalPerStream)
	for i := range portions {
		if early := time.Until(start.Add(spread * time.Duration(i) / portions)); early > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(early):
			}
		}
		f.wakePortion(i)
	}
}

func (f *feed) wakePortion(i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.grown[i] != nil {
		close(f.grown[i])
		f.grown[i] = nil
	}
}

// after is time.After if enabled. Otherwise the channel never receives.
func after(enabled bool, d time.Duration) <-chan time.Time {
	if !enabled {
		return nil
	}
	return time.After(d)
}

// catchUp adds the events that the feed has not read yet. If there are more than it
// caches, it returns true before it evicts events for which no stream was woken.
func (f *feed) catchUp(ctx context.Context) (more bool, err error) {
	for size := 0; size < f.memory/2; {
		events, err := f.Read(ctx, f.next, feedBatch)
		if err != nil || len(events) == 0 {
			return false, err
		}
		c, err := newChunk(events)
		if err != nil {
			return false, err
		}
		f.add(c)
		size += c.size()
	}
	return true, nil
}

// add appends a chunk and evicts the oldest chunks beyond its memory. The caller must
// call wake.
func (f *feed) add(c *chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = append(f.chunks, c)
	f.next = c.next
	for f.size += c.size(); f.size > f.memory && len(f.chunks) > 1; f.chunks = f.chunks[1:] {
		f.size -= f.chunks[0].size()
	}
}

// from returns the chunks that contain the event with a sequence number and all
// later events. If there is no such event yet, it returns a channel that is closed
// when the portion is woken for it. The result evicted reports whether the event is no
// longer cached.
func (f *feed) from(seq int64, portion int) (chunks []*chunk, grown <-chan struct{}, evicted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq >= f.next {
		if f.grown[portion] == nil {
			f.grown[portion] = make(chan struct{})
		}
		return nil, f.grown[portion], false
	}
	if len(f.chunks) == 0 || seq < f.chunks[0].first {
		return nil, nil, true
	}
	i := len(f.chunks) - 1
	for f.chunks[i].first > seq {
		i--
	}
	return f.chunks[i:len(f.chunks):len(f.chunks)], nil, false
}

// idBefore returns the id of the event before a sequence number, or Earliest if it
// is the first.
func (f *feed) idBefore(ctx context.Context, seq int64) (id string, err error) {
	if seq == 0 {
		return Earliest, nil
	}
	events, err := f.Read(ctx, seq-1, 1)
	if err != nil {
		return "", err
	}
	return events[0].ID, nil
}
