package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// inBubble runs a test in a bubble of testing/synctest, where time only advances when
// all goroutines are blocked. The network is in memory, because a system call does not
// count as blocked.
func inBubble(t *testing.T, configure func(*http.Server), test func(b *backend)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(newBackendOn(t, &pipes{make(chan net.Conn), configure}))
	})
}

// TestStreamEnds checks that a stream ends if its token is revoked or the server
// stops.
func TestStreamEnds(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		token := decode[ledger.Token](b.post("/v1/orgs/acme/tokens", `{"name":"short","scope":"read"}`).want(201))
		l := b.listen("", token.Secret, nil)
		start := time.Now()
		b.delete("/v1/orgs/acme/tokens/" + token.ID).want(204)
		l.wantEnd() // revoked
		if took := time.Since(start); took > b.server.timing.Check {
			t.Errorf("the stream of a revoked token ended after %v, want at most %v", took, b.server.timing.Check)
		}

		l = b.listen("", b.reader, nil)
		b.server.EndStreams()
		l.wantEnd() // the server stops
	})
}

// TestStreamIgnoresServerTimeouts checks that the timeouts of other requests do not
// end a stream.
func TestStreamIgnoresServerTimeouts(t *testing.T) {
	timeouts := func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = 30*time.Second, time.Minute }
	inBubble(t, timeouts, func(b *backend) {
		l := b.listen("", b.reader, nil)
		time.Sleep(10 * time.Minute)
		b.putPolicy("*", `{"requirements":[]}`).want(200)
		l.next(1)
	})
}

// TestStreamKeepAlive checks that a stream without events sends comments.
func TestStreamKeepAlive(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		l := b.listen("", b.reader, nil)
		for range 3 {
			start := time.Now()
			<-l.comments
			if took := time.Since(start); took != b.server.timing.Silence {
				t.Errorf("comment after %v, want %v", took, b.server.timing.Silence)
			}
		}
	})
}

// TestLastUse checks that the last use of a token is recorded in the background.
func TestLastUse(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		b.clock.advance(time.Hour)
		b.get("/v1/token").want(200)
		synctest.Wait()
		if token := decode[ledger.Token](b.get("/v1/token").want(200)); token.LastUsedAt != b.clock.time() {
			t.Errorf("last_used_at %s, want %s", token.LastUsedAt, b.clock.time())
		}
	})
}

// pipes is an in-memory network.
type pipes struct {
	dialled   chan net.Conn
	configure func(*http.Server) // or nil
}

// serve starts a server on the pipes, or on loopback if they are nil.
func (p *pipes) serve(handler http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	if p != nil {
		s.Listener.Close()
		s.Listener = &pipeListener{pipes: p, closed: make(chan struct{})}
		if p.configure != nil {
			p.configure(s.Config)
		}
	}
	s.Start()
	return s
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.dialled <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	*pipes
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "ledger.example", Net: "pipe"} }
