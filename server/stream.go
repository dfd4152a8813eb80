package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// digestInterval is the minimum time between two messages of a digest.
	digestInterval = 500 * time.Millisecond
	// streamRetry asks clients to wait for 3 s before they reconnect.
	streamRetry = "retry: 3000\n"
)

// A stream sends an org's events to one client, each once and in order, starting
// at its cursor. It buffers nothing: the events come from the feed, or from the
// database if the feed no longer caches them.
type stream struct {
	feed     *feed
	portion  int // of the feed's streams
	filter   filter
	cursor   int64                       // sequence number of the next event to send
	preamble string                      // text before the first event
	done     func()                      // releases the feed and the stream's place among the limits
	recheck  func(context.Context) error // returns an error if the token is no longer valid
	cutOff   func()                      // called if the client does not read
	timing   streamTiming
	log      *slog.Logger
	stopping <-chan struct{} // closed when the server stops

	body    wire.Stream
	silence *time.Timer   // runs since the last write
	closed  chan struct{} // always closed
}

// streamEvents returns the live stream of an org's events.
func (s *Server) streamEvents(c *call) (*reply, error) {
	for _, name := range []string{"limit", "cursor", "after", "order"} {
		if c.query.Has(name) {
			return nil, invalidParameter(name, "only valid for the history (send Accept: %s)", typeJSON)
		}
	}
	f, err := c.streamFilter(s)
	if err != nil {
		return nil, err
	}

	release, err := s.limits.acquire(c.org(), c.caller.token.ID)
	if err != nil {
		return nil, err
	}
	feed, portion, err := s.feeds.acquire(c.ctx(), c.org())
	if err != nil {
		release()
		return nil, err
	}
	caller := c.caller
	st := &stream{feed: feed, portion: portion, filter: f, timing: s.timing, stopping: s.stopping, log: s.log,
		cutOff:  s.observer.CutOff,
		done:    func() { s.feeds.release(feed); release() },
		recheck: func(ctx context.Context) error { return s.recheck(ctx, caller) }}
	if st.cursor, st.preamble, err = c.streamStart(feed); err != nil {
		st.done()
		return nil, err
	}
	return &reply{stream: st.serve}, nil
}

func (c *call) streamFilter(s *Server) (f filter, err error) {
	f.commit, f.digest = c.ctx().Value(digestKey{}).(string)
	if f.types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if err := c.caller.mayRead(f.types...); err != nil {
		return f, err
	}
	if f.repo = c.query.Get("repo"); f.repo != "" {
		_, err = s.store.Repo(c.ctx(), c.org(), f.repo) // the stream of an unknown repo would have no events
	}
	return f, err
}

// streamStart returns the sequence number of the first event to send, and the text
// before it. The header Last-Event-ID takes precedence over the parameter, because
// a client that resumes sends the header and repeats the original parameter.
func (c *call) streamStart(t *feed) (seq int64, preamble string, err error) {
	id := c.r.Header.Get("Last-Event-ID")
	if id == "" {
		id = c.query.Get("last_event_id")
	}
	switch id {
	case "":
		if seq, err = t.Next(c.ctx()); err == nil {
			id, err = t.idBefore(c.ctx(), seq)
		}
		// An id without data is not a message, but clients resume from it. So no event
		// is lost if the stream breaks before the first message.
		return seq, streamRetry + "id: " + id + "\n\n", err
	case earliest:
		return 0, streamRetry + "\n", nil
	}
	seq, ok, err := t.Seq(c.ctx(), id)
	if err != nil || ok {
		return seq + 1, streamRetry + "\n", err
	}
	return c.streamAfterRestore(t, id)
}

// streamAfterRestore is streamStart for a client that knows an event which does not exist. If a
// restore of the database may have removed it, the first message says so. The ID of the message is
// the last event that the client has in common with the database, so it comes once.
func (c *call) streamAfterRestore(t *feed, id string) (seq int64, preamble string, err error) {
	cut, ok, err := t.Cut(c.ctx(), id)
	if err == nil && !ok {
		err = invalidParameter("last_event_id", "event %q not found (use the ID of an event, or %s)", id, earliest)
	}
	if err != nil {
		return 0, "", err
	}
	last, err := t.idBefore(c.ctx(), cut.Seq)
	if err != nil {
		return 0, "", err
	}
	data, err := marshal(eventstream.Restored{LastEvent: last, RestoredAt: cut.RestoredAt})
	if err != nil {
		return 0, "", err
	}
	message := fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", eventstream.LedgerRestored, last, data)
	return cut.Seq, streamRetry + message, nil
}

// serve sends events until the client disconnects or stops reading, its token
// becomes invalid, or the server stops. If possible, it returns before and leaves that
// to another goroutine, which takes less memory.
func (st *stream) serve(w http.ResponseWriter, r *http.Request) {
	ended := st.done
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
func (st *stream) begin(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Connection", "close")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx delays events
	wire.DisableCompression(h)
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
	return st.body.Send(wire.NewBlock([]byte(st.preamble)), st.timing.stall)
}

// serveDetached sends events as serve does, after the handler has returned.
func (st *stream) serveDetached(ctx context.Context, body *wire.Detached) {
	defer st.done()
	defer body.Close()
	defer func() {
		if p := recover(); p != nil {
			st.log.ErrorContext(ctx, "stream failed", "error", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
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
func (st *stream) follow(ctx context.Context) {
	st.silence, st.closed = time.NewTimer(st.timing.silence), make(chan struct{})
	defer st.silence.Stop()
	close(st.closed)
	check := time.NewTicker(st.timing.check)
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
			if st.recheck(ctx) != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-st.stopping:
			return
		}
	}
}

// send writes the next events that are available. It returns a channel that is
// closed when there are more.
func (st *stream) send(ctx context.Context) (more <-chan struct{}, err error) {
	chunks, grown, evicted := st.feed.from(st.cursor, st.portion)
	if evicted {
		if chunks, err = st.readChunk(ctx); err != nil {
			return nil, err
		}
	}
	if len(chunks) == 0 && grown != nil {
		return grown, nil
	}

	if n := len(chunks); n > 0 && st.filter.digest {
		latest := st.filter.latest(chunks, st.cursor)
		st.cursor = chunks[n-1].next
		if err := st.write(latest); err != nil || latest.Len() == 0 || evicted {
			return st.closed, err
		}
		return st.closed, st.rest(ctx)
	}

	for _, c := range chunks {
		if err := st.write(st.filter.pick(c, st.cursor)); err != nil {
			return nil, err
		}
		st.cursor = c.next
	}
	return st.closed, nil
}

// rest waits before the next message of a digest.
func (st *stream) rest(ctx context.Context) error {
	select {
	case <-time.After(digestInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-st.stopping:
		return nil // follow ends the stream
	}
}

// readChunk reads the next events from the database.
func (st *stream) readChunk(ctx context.Context) ([]*chunk, error) {
	var events []store.Event
	err := onOwnStack(func() (err error) {
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
// read for timing.stall.
func (st *stream) write(b wire.Block) error {
	if b.Len() == 0 {
		return nil
	}
	st.silence.Reset(st.timing.silence)
	err := st.body.Send(b, st.timing.stall)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		st.cutOff()
	}
	return err
}
