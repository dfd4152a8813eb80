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
	// streamWrite is the most that one such wait is for.
	streamWrite = 64 << 10
	// streamRetry is what clients are told to wait before they connect again.
	streamRetry = "retry: 3000\n"
)

// A stream sends an org's events to one client, each once and in order, from
// its cursor on. It holds nothing but the cursor: what it sends comes from the
// feed, or, when it is too far behind for that, from the database.
type stream struct {
	feed   *feed
	filter filter
	cursor int64  // the sequence number of the next event to send
	begin  string // what it writes first
	valid  func() error
	pace   pace
	ends   <-chan struct{} // closed when the server stops

	w       http.ResponseWriter
	rc      *http.ResponseController
	silence *time.Timer   // since the last write
	atOnce  chan struct{} // closed
}

// streamEvents answers with the live stream of an org's events.
func (s *Server) streamEvents(c *call) (*reply, error) {
	for _, name := range []string{"limit", "cursor", "after", "order"} {
		if c.query.Has(name) {
			return nil, invalidParameter(name, "it is for the history: ask for that with Accept: %s", typeJSON)
		}
	}
	f, err := c.streamFilter(s)
	if err != nil {
		return nil, err
	}
	release, err := s.limits.take(c.org(), c.caller.token.ID)
	if err != nil {
		return nil, err
	}
	feed, err := s.feeds.take(c.ctx(), c.org())
	if err != nil {
		release()
		return nil, err
	}
	done := func() { s.feeds.give(c.org(), feed); release() }
	st := &stream{feed: feed, filter: f, pace: s.pace, ends: s.ending, valid: func() error {
		_, err := c.identify(c.r)
		return err
	}}
	if st.cursor, st.begin, err = c.streamStart(feed); err != nil {
		done()
		return nil, err
	}
	return &reply{stream: func(w http.ResponseWriter, r *http.Request) {
		defer done()
		st.serve(w, r)
	}}, nil
}

func (c *call) streamFilter(s *Server) (f filter, err error) {
	if f.types, err = parse(c, "types", ledger.ParseEventTypes); err != nil {
		return f, err
	}
	if f.repo = c.query.Get("repo"); f.repo != "" {
		_, err = s.store.Repo(c.ctx(), c.org(), f.repo) // an unknown one would be silent for ever
	}
	return f, err
}

// streamStart returns the sequence number of the first event to send, and what
// the stream writes before it. The header comes from a client that resumes, and
// so goes before the parameter, which it repeats.
func (c *call) streamStart(t *feed) (seq int64, begin string, err error) {
	id := c.r.Header.Get("Last-Event-ID")
	if id == "" {
		id = c.query.Get("last_event_id")
	}
	switch id {
	case "":
		if seq, err = t.Next(c.ctx()); err == nil {
			id, err = t.before(c.ctx(), seq)
		}
		// An id without data is no message, but what the client resumes from: also
		// when the stream is cut off before its first message, nothing is lost.
		return seq, streamRetry + "id: " + id + "\n\n", err
	case earliest:
		return 0, streamRetry + "\n", nil
	}
	seq, ok, err := t.Seq(c.ctx(), id)
	if err == nil && !ok {
		err = invalidParameter("last_event_id", "the org has no event %q: give the id of one, or %s", id, earliest)
	}
	return seq + 1, streamRetry + "\n", err
}

// serve sends until the client goes, does not read, loses its token, or the
// server stops.
func (st *stream) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", typeEvents)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // or nginx would hold events back
	wire.NeverCompress(h)
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	st.w, st.rc = w, http.NewResponseController(w)
	st.silence, st.atOnce = time.NewTimer(st.pace.silence), make(chan struct{})
	defer st.silence.Stop()
	close(st.atOnce)
	// The server's limit for reading a request would end the stream.
	if st.rc.SetReadDeadline(time.Time{}) == nil && st.write([]byte(st.begin)) == nil {
		st.follow(r.Context())
	}
}

func (st *stream) follow(ctx context.Context) {
	check := time.NewTicker(st.pace.check)
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
			if apart(st.valid) != nil {
				return
			}
		case <-ctx.Done():
			return
		case <-st.ends:
			return
		}
	}
}

// send writes what there is, as much as is at hand at once. The channel it
// returns is closed when there is more.
func (st *stream) send(ctx context.Context) (more <-chan struct{}, err error) {
	chunks, grown, behind := st.feed.from(st.cursor)
	if behind {
		if chunks, err = st.readChunk(ctx); err != nil {
			return nil, err
		}
	}
	if len(chunks) == 0 && grown != nil {
		return grown, nil
	}
	for _, c := range chunks {
		if err := st.write(st.filter.pick(c, st.cursor)); err != nil {
			return nil, err
		}
		st.cursor = c.next
	}
	return st.atOnce, nil
}

func (st *stream) readChunk(ctx context.Context) ([]*chunk, error) {
	var events []store.Event
	err := apart(func() (err error) {
		events, err = st.feed.Read(ctx, st.cursor, feedBatch)
		return err
	})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	c, err := newChunk(events)
	return []*chunk{c}, err
}

// apart runs do on a goroutine of its own and waits for it. A query needs a
// deep stack, which would stay with a stream for as long as that is open: with
// thousands of them, it is most of their memory.
func apart(do func() error) error {
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

// write writes text and has it sent. It fails when the client does not read
// for as long as a stall may be.
func (st *stream) write(text []byte) error {
	for len(text) > 0 {
		if err := st.rc.SetWriteDeadline(time.Now().Add(st.pace.stall)); err != nil {
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
		st.silence.Reset(st.pace.silence)
	}
	return nil
}
