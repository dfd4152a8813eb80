package server

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// feedBatch is how many events are read at a time.
	feedBatch = 500
	// feedMemory is about how many bytes of frames a feed keeps for streams
	// that are a little behind; those further behind read the database.
	feedMemory = 2 << 20
	// feedPause is the least time between two readings. The first event after a
	// pause goes out at once; of those that come faster, the streams write several
	// at a time, or a busy org would spend its time on them.
	feedPause = 20 * time.Millisecond
	// feedRetry is how long a feed waits after the database has failed.
	feedRetry = time.Second
)

// earliest, in the place of an event's id, asks for everything there is.
const earliest = "earliest"

// feeds holds the feeds of the orgs that somebody listens to.
type feeds struct {
	store *store.Store
	log   *slog.Logger

	mu    sync.Mutex
	byOrg map[string]*feed
}

// A feed reads the events of one org, and encodes each, once for all of its
// streams.
type feed struct {
	*store.Tail
	log *slog.Logger

	streams int                // that use it; guarded by feeds.mu
	stop    context.CancelFunc // of run
	stopped chan struct{}      // closed when run has ended

	mu     sync.Mutex
	chunks []*chunk // those read last, the newest at the end, without gaps
	size   int      // bytes of their frames
	next   int64    // sequence number of the event behind the last chunk
	grown  chan struct{}
}

// A chunk is a run of consecutive events. It does not change once it is made.
type chunk struct {
	first, next int64 // sequence numbers from first on, before next
	frames      []frame
	plain       []byte // the frames for streams without filters, joined
}

// A frame is one event as the stream writes it.
type frame struct {
	seq  int64
	kind ledger.EventType
	repo string
	text []byte
}

// take returns the org's feed, which it starts where there is none. It must be
// given back.
func (f *feeds) take(ctx context.Context, org string) (*feed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byOrg[org]; known != nil {
		known.streams++
		return known, nil
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
	fresh := &feed{Tail: tail, log: f.log, streams: 1, stop: stop, next: next, grown: make(chan struct{}),
		stopped: make(chan struct{})}
	f.byOrg[org] = fresh
	go fresh.run(run) // until the last stream gives it back
	return fresh, nil
}

// give takes a feed back. With its last stream it ends it, and waits for that.
func (f *feeds) give(org string, used *feed) {
	f.mu.Lock()
	used.streams--
	last := used.streams == 0
	if last {
		delete(f.byOrg, org)
	}
	f.mu.Unlock()
	if last {
		used.stop()
		<-used.stopped
	}
}

func (f *feed) run(ctx context.Context) {
	defer close(f.stopped)
	for {
		changed, pause := f.Changed(), time.After(feedPause)
		if err := f.catchUp(ctx); err != nil && ctx.Err() == nil {
			f.log.ErrorContext(ctx, "reading events for the stream", "error", err)
			changed = nil // try again by time
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
		case <-pause:
		}
	}
}

// after is time.After where wanted, else never.
func after(wanted bool, d time.Duration) <-chan time.Time {
	if !wanted {
		return nil
	}
	return time.After(d)
}

func (f *feed) catchUp(ctx context.Context) error {
	for {
		events, err := f.Read(ctx, f.next, feedBatch) // only run changes next
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

// add appends a chunk, forgets the oldest past feedMemory, and wakes the streams.
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

// from returns the chunks that hold the event of that sequence number and those
// behind it. Where there is none yet, grown tells when there is; behind tells
// that the feed has forgotten it.
func (f *feed) from(seq int64) (chunks []*chunk, grown <-chan struct{}, behind bool) {
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

// before returns the id of the event before a sequence number, or earliest.
func (f *feed) before(ctx context.Context, seq int64) (id string, err error) {
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
			c.plain = append(c.plain, text...)
		}
	}
	return c, nil
}

func (c *chunk) size() int { return 2 * len(c.plain) }

// A filter says which events a stream wants.
type filter struct {
	types []ledger.EventType // nil: the default ones
	repo  string             // empty: all
}

func isDefault(t ledger.EventType) bool { return t != ledger.EventRadar }

func (f filter) wants(e frame) bool {
	if f.repo != "" && !strings.EqualFold(f.repo, e.repo) {
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

// pick returns what the filter wants of the chunk, from a sequence number on.
func (f filter) pick(c *chunk, from int64) []byte {
	if from <= c.first && f.types == nil && f.repo == "" {
		return c.plain
	}
	var text []byte
	for _, e := range c.frames {
		if e.seq >= from && f.wants(e) {
			text = append(text, e.text...)
		}
	}
	return text
}
