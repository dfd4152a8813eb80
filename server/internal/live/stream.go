package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// digestInterval is the minimum time between two messages of a digest.
	digestInterval = 500 * time.Millisecond
	// retry asks clients to wait for 3 s before they reconnect.
	retry = "retry: 3000\n"
)

// A Timing holds the timeouts and intervals of a stream.
type Timing struct {
	Silence time.Duration // time without events after which it writes a comment
	Check   time.Duration // interval between two checks of its caller
	Stall   time.Duration // timeout of a write, if the client does not read
}

// DefaultTiming is a little below the documented 15 s for silence and revocation.
var DefaultTiming = Timing{Silence: 14 * time.Second, Check: 10 * time.Second, Stall: 10 * time.Second}

// Options are what a stream sends, and to whom.
type Options struct {
	Filter   Filter
	Timing   Timing
	Recheck  func(context.Context) error // returns an error if the caller may no longer read
	CutOff   func()                      // called if the client does not read
	Ended    func()                      // called when the stream has ended
	Stopping <-chan struct{}             // closed when the server stops
}

// A Stream sends an org's events to one client, each once and in order, starting
// at its cursor. It buffers nothing: the events come from the feed, or from the
// database if the feed no longer caches them.
type Stream struct {
	Options
	feeds    *Feeds
	feed     *feed
	portion  int    // of the feed's streams
	cursor   int64  // sequence number of the next event to send
	preamble string // text before the first event

	body    wire.Stream
	silence *time.Timer   // runs since the last write
	closed  chan struct{} // always closed
}

// Open returns a stream of an org's events. The caller must call Serve, or Close.
func (f *Feeds) Open(ctx context.Context, org string, o Options) (*Stream, error) {
	feed, portion, err := f.acquire(ctx, org)
	if err != nil {
		return nil, err
	}
	return &Stream{Options: o, feeds: f, feed: feed, portion: portion}, nil
}

// Close ends a stream.
func (st *Stream) Close() {
	st.feeds.release(st.feed)
	st.Ended()
}

// StartAfter makes the stream start after the event with an id: at the next event to come if id is
// empty, and at the first one if it is Earliest.
func (st *Stream) StartAfter(ctx context.Context, id string) (err error) {
	switch id {
	case "":
		if st.cursor, err = st.feed.Next(ctx); err == nil {
			id, err = st.feed.idBefore(ctx, st.cursor)
		}
		// An id without data is not a message, but clients resume from it. So no event
		// is lost if the stream breaks before the first message.
		st.preamble = retry + "id: " + id + "\n\n"
		return err
	case Earliest:
		st.preamble = retry + "\n"
		return nil
	}

	seq, ok, err := st.feed.Seq(ctx, id)
	if err != nil || ok {
		st.cursor, st.preamble = seq+1, retry+"\n"
		return err
	}
	return st.startAfterRestore(ctx, id)
}

// startAfterRestore is StartAfter for a client that knows an event which does not exist. If a
// restore of the database may have removed it, the first message says so. The ID of the message is
// the last event that the client has in common with the database, so it comes once.
func (st *Stream) startAfterRestore(ctx context.Context, id string) error {
	cut, ok, err := st.feed.Cut(ctx, id)
	if err == nil && !ok {
		err = ledger.FieldErrorf(ledger.CodeInvalidParameter, "last_event_id",
			"event %q not found (use the ID of an event, or %s)", id, Earliest)
	}
	if err != nil {
		return err
	}
	last, err := st.feed.idBefore(ctx, cut.Seq)
	if err != nil {
		return err
	}
	data, err := json.Marshal(eventstream.Restored{LastEvent: last, RestoredAt: cut.RestoredAt})
	if err != nil {
		return err
	}
	message := fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", eventstream.LedgerRestored, last, data)
	st.cursor, st.preamble = cut.Seq, retry+message
	return nil
}

// Serve sends events until the client disconnects or stops reading, its token
// becomes invalid, or the server stops. If possible, it returns before and leaves that
// to another goroutine, which takes less memory.
func (st *Stream) Serve(w http.ResponseWriter, r *http.Request) {
	ended := st.Close
	defer func() { ended() }()
	if err := st.begin(w, r); err != nil || r.Method == http.MethodHead {
		return
	}

	if body, ok := wire.Detach(w, r); ok {
		st.body, ended = body, func() {}
		go st.serveDetached(context.WithoutCancel(r.Context()), body) // Server.WaitForStreams waits for it
		return
	}
	st.follow(r.Context())
}

// begin sends the header and the preamble.
func (st *Stream) begin(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", wire.EventStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Connection", "close")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx delays events
	wire.DisableCompression(w, r)
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}

	// The server's read timeout would end the stream.
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	st.body = wire.NewStream(w)
	return st.body.Send(wire.NewBlock([]byte(st.preamble)), st.Timing.Stall)
}

// serveDetached sends events as Serve does, after the handler has returned.
func (st *Stream) serveDetached(ctx context.Context, body *wire.Detached) {
	defer st.Close()
	defer body.Close()
	defer func() {
		if p := recover(); p != nil {
			st.feeds.log.ErrorContext(ctx, "stream failed", "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // until body is closed
		if body.WaitForClient() {
			cancel()
		}
	}()
	st.follow(ctx)
}

// follow sends events and comments until the stream ends.
func (st *Stream) follow(ctx context.Context) {
	st.silence, st.closed = time.NewTimer(st.Timing.Silence), make(chan struct{})
	defer st.silence.Stop()
	close(st.closed)
	check := time.NewTicker(st.Timing.Check)
	defer check.Stop()
	for {
		more, err := st.send(ctx)
		if err != nil {
			return
		}

		select {
		case <-more:
		case <-st.silence.C:
			if st.write(wire.NewBlock([]byte(":\n\n"))) != nil {
				return
			}
		case <-check.C:
			if st.Recheck(ctx) != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-st.Stopping:
			return
		}
	}
}

// send writes the next events that are available. It returns a channel that is
// closed when there are more.
func (st *Stream) send(ctx context.Context) (more <-chan struct{}, err error) {
	chunks, grown, evicted := st.feed.from(st.cursor, st.portion)
	if evicted {
		if chunks, err = st.readChunk(ctx); err != nil {
			return nil, err
		}
	}
	if len(chunks) == 0 && grown != nil {
		return grown, nil
	}

	if n := len(chunks); n > 0 && st.Filter.Digest {
		latest := st.Filter.latest(chunks, st.cursor)
		st.cursor = chunks[n-1].next
		if err := st.write(latest); err != nil || latest.Len() == 0 || evicted {
			return st.closed, err
		}
		return st.closed, st.rest(ctx)
	}

	for _, c := range chunks {
		if err := st.write(st.Filter.pick(c, st.cursor)); err != nil {
			return nil, err
		}
		st.cursor = c.next
	}
	return st.closed, nil
}

// rest waits before the next message of a digest.
func (st *Stream) rest(ctx context.Context) error {
	select {
	case <-time.After(digestInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-st.Stopping:
		return nil // follow ends the stream
	}
}

// readChunk reads the next events from the database.
func (st *Stream) readChunk(ctx context.Context) ([]*chunk, error) {
	var events []store.Event
	err := OnOwnStack(func() (err error) {
		events, err = st.feed.Read(ctx, st.cursor, feedBatch)
		return err
	})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	c, err := newChunk(events)
	return []*chunk{c}, err
}

// write sends a block, if it is not empty. It returns an error if the client does not
// read for Timing.Stall.
func (st *Stream) write(b wire.Block) error {
	if b.Len() == 0 {
		return nil
	}
	st.silence.Reset(st.Timing.Silence)
	err := st.body.Send(b, st.Timing.Stall)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		st.CutOff()
	}
	return err
}

// OnOwnStack runs do in a new goroutine and waits for it. A query needs a deep
// stack, which the goroutine of a stream would retain as long as the stream is
// open. With thousands of streams, these stacks would be most of their memory.
func OnOwnStack(do func() error) error {
	var err error
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		err = do()
	}()
	if p := <-ended; p != nil {
		panic(p)
	}
	return err
}
