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
	// portions is the number of portions of a feed's streams. If there are more than
	// atOnce streams, the feed wakes the portions one after the other, in the part of the
	// interval that atOnce streams do not need. So requests do not have to wait for
	// thousands of writes.
	portions = 128
	atOnce   = 1000
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
	byOrg map[int64]*feed // by row id, since another org may get the name
}

// A feed is a cache of the latest events of one org. It reads and encodes each
// event once for all of the org's streams.
type feed struct {
	*store.Tail
	log    *slog.Logger
	memory int // feedMemory, except in tests

	streams atomic.Int64       // number of streams; only changed with feeds.mu held
	joined  int                // number of streams that have acquired the feed; guarded by feeds.mu
	stop    context.CancelFunc // ends run
	stopped chan struct{}      // closed when run has ended

	mu     sync.Mutex
	chunks []*chunk                // latest chunks, oldest first, without gaps
	size   int                     // of the chunks' frames, in bytes
	next   int64                   // sequence number after the last chunk
	grown  [portions]chan struct{} // closed to wake a portion; nil if none of its streams waits
}

// A chunk is a run of consecutive events. It is immutable.
type chunk struct {
	first, next int64 // sequence numbers: first is included, next is not
	frames      []frame
	unfiltered  wire.Block // the concatenated frames for streams without filters
}

// A frame is one event in SSE form.
type frame struct {
	seq  int64
	kind ledger.EventType
	repo string
	text []byte
}

// acquire returns the org's feed, and the portion of its streams to which the new one
// belongs. It starts the feed if necessary. The caller must release it.
func (f *feeds) acquire(ctx context.Context, org string) (fd *feed, portion int, err error) {
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
func (f *feeds) start(ctx context.Context, tail *store.Tail) (*feed, error) {
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
func (f *feeds) release(fd *feed) {
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
	c := &chunk{
		first: events[0].Seq, next: events[len(events)-1].Seq + 1, frames: make([]frame, 0, len(events)),
	}
	var unfiltered [][]byte
	for _, e := range events {
		if len(e.Body) == 0 {
			continue // pruned
		}
		data, err := eventstream.Data(e.Type, e.Body)
		if err != nil {
			return nil, err
		}

		text := make([]byte, 0, len(data)+64)
		text = append(append(text, "event: "...), e.Type...)
		text = append(append(text, "\nid: "...), e.ID...)
		text = append(append(text, "\ndata: "...), data...)
		text = append(text, "\n\n"...)
		c.frames = append(c.frames, frame{e.Seq, e.Type, e.Repo, text})
		if isDefault(e.Type) {
			unfiltered = append(unfiltered, text)
		}
	}
	c.unfiltered = wire.NewBlock(unfiltered...)
	return c, nil
}

// size returns the approximate number of bytes that the chunk takes.
func (c *chunk) size() int {
	size := c.unfiltered.Len()
	for _, f := range c.frames {
		size += len(f.text)
	}
	return size
}

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
func isDefault(t ledger.EventType) bool {
	return t == ledger.EventAttestation || t == ledger.EventState || t == ledger.EventPolicy
}

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
// sequence number. It is empty if no frame matches.
func (f filter) latest(chunks []*chunk, from int64) wire.Block {
	for _, c := range slices.Backward(chunks) {
		for _, e := range slices.Backward(c.frames) {
			if e.seq >= from && f.wants(e) {
				return wire.NewBlock(e.text)
			}
		}
	}
	return wire.Block{}
}

// pick returns the frames of a chunk that match the filter, starting at a sequence
// number.
func (f filter) pick(c *chunk, from int64) wire.Block {
	if from <= c.first && f.types == nil && f.repo == "" {
		return c.unfiltered
	}
	var texts [][]byte
	for _, e := range c.frames {
		if e.seq >= from && f.wants(e) {
			texts = append(texts, e.text)
		}
	}
	return wire.NewBlock(texts...)
}
