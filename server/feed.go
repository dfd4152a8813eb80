package server

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
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
	// feedRetry is how long a feed waits after a failed read.
	feedRetry = time.Second
)

// earliest, instead of an event's id, starts a stream at the org's first event.
const earliest = "earliest"

// feeds holds the feeds of the orgs that have open streams.
type feeds struct {
	store *store.Store
	log   *slog.Logger

	mu    sync.Mutex
	byOrg map[string]*feed
}

// A feed is a cache of the latest events of one org. It reads and encodes each
// event once for all of the org's streams.
type feed struct {
	*store.Tail
	log *slog.Logger

	streams atomic.Int64       // number of streams; only changed with feeds.mu held
	stop    context.CancelFunc // ends run
	stopped chan struct{}      // closed when run has ended

	mu     sync.Mutex
	chunks []*chunk      // latest chunks, oldest first, without gaps
	size   int           // of the chunks' frames, in bytes
	next   int64         // sequence number after the last chunk
	grown  chan struct{} // closed and replaced when a chunk is added
}

// A chunk is a run of consecutive events. It is immutable.
type chunk struct {
	first, next int64 // sequence numbers: first is included, next is not
	frames      []frame
	unfiltered  []byte // the concatenated frames for streams without filters
}

// A frame is one event in SSE form.
type frame struct {
	seq  int64
	kind ledger.EventType
	repo string
	text []byte
}

// acquire returns the org's feed and starts it if necessary. The caller must
// release it.
func (f *feeds) acquire(ctx context.Context, org string) (*feed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if existing := f.byOrg[org]; existing != nil {
		existing.streams.Add(1)
		return existing, nil
	}

	tail, err := f.store.Tail(ctx, org)
	if err != nil {
		return nil, err
	}
	next, err := tail.Next(ctx)
	if err != nil {
		return nil, err
	}

	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	fd := &feed{Tail: tail, log: f.log, stop: stop, next: next, grown: make(chan struct{}),
		stopped: make(chan struct{})}
	fd.streams.Add(1)
	f.byOrg[org] = fd
	go fd.run(run) // until the last stream releases it
	return fd, nil
}

// release ends a stream's use of a feed. If it was the last stream, release stops
// the feed and waits until it has ended.
func (f *feeds) release(org string, fd *feed) {
	f.mu.Lock()
	last := fd.streams.Add(-1) == 0
	if last {
		delete(f.byOrg, org)
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
		err := f.catchUp(ctx)
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
		}

		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-after(changed == nil, feedRetry):
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

// after is time.After if enabled. Otherwise the channel never receives.
func after(enabled bool, d time.Duration) <-chan time.Time {
	if !enabled {
		return nil
	}
	return time.After(d)
}

// catchUp adds all events that the feed has not read yet.
func (f *feed) catchUp(ctx context.Context) error {
	for {
		events, err := f.Read(ctx, f.next, feedBatch)
		if err != nil || len(events) == 0 {
			return err
		}
		c, err := newChunk(events)
		if err != nil {
			return err
		}
		f.add(c)
	}
}

// add appends a chunk, evicts the oldest chunks beyond feedMemory, and wakes the
// streams.
func (f *feed) add(c *chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = append(f.chunks, c)
	f.next = c.next
	for f.size += c.size(); f.size > feedMemory && len(f.chunks) > 1; f.chunks = f.chunks[1:] {
		f.size -= f.chunks[0].size()
	}
	close(f.grown)
	f.grown = make(chan struct{})
}

// from returns the chunks that contain the event with a sequence number and all
// later events. If there is no such event yet, it returns a channel that is closed
// when there is. The result evicted reports whether the event is no longer cached.
func (f *feed) from(seq int64) (chunks []*chunk, grown <-chan struct{}, evicted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq >= f.next {
		return nil, f.grown, false
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

// idBefore returns the id of the event before a sequence number, or earliest if it
// is the first.
func (f *feed) idBefore(ctx context.Context, seq int64) (id string, err error) {
	if seq == 0 {
		return earliest, nil
	}
	events, err := f.Read(ctx, seq-1, 1)
	if err != nil {
		return "", err
	}
	return events[0].ID, nil
}

func newChunk(events []store.Event) (*chunk, error) {
	c := &chunk{first: events[0].Seq, next: events[len(events)-1].Seq + 1, frames: make([]frame, len(events))}
	for i, e := range events {
		data, err := eventstream.Data(e.Type, e.Body)
		if err != nil {
			return nil, err
		}

		text := make([]byte, 0, len(data)+64)
		text = append(append(text, "event: "...), e.Type...)
		text = append(append(text, "\nid: "...), e.ID...)
		text = append(append(text, "\ndata: "...), data...)
		text = append(text, "\n\n"...)
		c.frames[i] = frame{e.Seq, e.Type, e.Repo, text}
		if isDefault(e.Type) {
			c.unfiltered = append(c.unfiltered, text...)
		}
	}
	return c, nil
}

func (c *chunk) size() int { return 2 * len(c.unfiltered) }

// A filter selects the events of a stream.
type filter struct {
	types []ledger.EventType // nil: the default types
	repo  string             // empty: all repos
	// digest reports whether to send only the latest event, see Server.WithDigest.
	digest bool
	commit string // events of a digest; empty: all
}

// isDefault reports whether a stream without a filter of types has events of
// type t.
func isDefault(t ledger.EventType) bool { return t != ledger.EventRadar }

func (f filter) wants(e frame) bool {
	if f.repo != "" && !strings.EqualFold(f.repo, e.repo) {
		return false
	}
	if f.commit != "" && e.kind != ledger.EventPolicy && !bytes.Contains(e.text, []byte(f.commit)) {
		return false
	}
	if f.types == nil {
		return isDefault(e.kind)
	}
	for _, t := range f.types {
		if t == e.kind {
			return true
		}
	}
	return false
}

// latest returns the latest frame in the chunks that matches the filter, starting at a
// sequence number, or nil if no frame matches.
func (f filter) latest(chunks []*chunk, from int64) []byte {
	for _, c := range slices.Backward(chunks) {
		for _, e := range slices.Backward(c.frames) {
			if e.seq >= from && f.wants(e) {
				return e.text
			}
		}
	}
	return nil
}

// pick returns the frames of a chunk that match the filter, starting at a sequence
// number.
func (f filter) pick(c *chunk, from int64) []byte {
	if from <= c.first && f.types == nil && f.repo == "" {
		return c.unfiltered
	}
	var text []byte
	for _, e := range c.frames {
		if e.seq >= from && f.wants(e) {
			text = append(text, e.text...)
		}
	}
	return text
}
