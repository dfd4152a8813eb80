package server

import (
	"context"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/store"
)

const (
	// streamWrite is the maximum number of bytes in one write.
	streamWrite = 64 << 10
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
	filter   filter
	cursor   int64        // sequence number of the next event to send
	preamble string       // text before the first event
	valid    func() error // returns an error if the token is no longer valid
	timing   streamTiming
	stopping <-chan struct{} // closed when the server stops

	w       http.ResponseWriter
	rc      *http.ResponseController
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
	feed, err := s.feeds.acquire(c.ctx(), c.org())
	if err != nil {
		release()
		return nil, err
	}
	done := func() { s.feeds.release(c.org(), feed); release() }

	st := &stream{feed: feed, filter: f, timing: s.timing, stopping: s.stopping, valid: func() error {
		_, err := c.identify(c.r)
		return err
	}}
	if st.cursor, st.preamble, err = c.streamStart(feed); err != nil {
		done()
		return nil, err
	}
	return &reply{stream: func(w http.ResponseWriter, r *http.Request) {
		defer done()
		st.serve(w, r)
	}}, nil
}

func (c *call) streamFilter(s *Server) (f filter, err error) {
	f.commit, f.digest = c.ctx().Value(digestKey{}).(string)
	if f.types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
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
	if err == nil && !ok {
		err = invalidParameter("last_event_id", "event %q not found (use the ID of an event, or %s)", id, earliest)
	}
	return seq + 1, streamRetry + "\n", err
}

// serve sends events until the client disconnects or stops reading, its token
// becomes invalid, or the server stops.
func (st *stream) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx delays events
	wire.DisableCompression(h)
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}

	st.w, st.rc = w, http.NewResponseController(w)
	st.silence, st.closed = time.NewTimer(st.timing.silence), make(chan struct{})
	defer st.silence.Stop()
	close(st.closed)
	// The server's read timeout would end the stream.
	if st.rc.SetReadDeadline(time.Time{}) == nil && st.write([]byte(st.preamble)) == nil {
		st.follow(r.Context())
	}
}

// follow sends events and comments until the stream ends.
func (st *stream) follow(ctx context.Context) {
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
			if st.write([]byte(":\n\n")) != nil {
				return
			}
		case <-check.C:
			if onOwnStack(st.valid) != nil {
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
	chunks, grown, evicted := st.feed.from(st.cursor)
	if evicted {
		if chunks, err = st.readChunk(ctx); err != nil {
			return nil, err
		}
	}
	if len(chunks) == 0 && grown != nil {
		return grown, nil
	}

	if n := len(chunks); n > 0 && st.filter.digest {
		text := st.filter.latest(chunks, st.cursor)
		st.cursor = chunks[n-1].next
		if err := st.write(text); err != nil || text == nil || evicted {
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

// onOwnStack runs do in a new goroutine and waits for it. A query needs a deep
// stack, which the goroutine of a stream would retain as long as the stream is
// open. With thousands of streams, these stacks would be most of their memory.
func onOwnStack(do func() error) error {
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

// write writes text and flushes it. It returns an error if the client does not read
// for timing.stall.
func (st *stream) write(text []byte) error {
	for len(text) > 0 {
		if err := st.rc.SetWriteDeadline(time.Now().Add(st.timing.stall)); err != nil {
			return err
		}
		n, err := st.w.Write(text[:min(len(text), streamWrite)])
		if err == nil {
			err = st.rc.Flush()
		}
		if err != nil {
			return err
		}
		text = text[n:]
		st.silence.Reset(st.timing.silence)
	}
	return nil
}
