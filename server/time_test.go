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

// inBubble runs a test in a bubble of testing/synctest, where time passes only
// when everybody waits. The network is in memory: nobody waits for a system call.
func inBubble(t *testing.T, configure func(*http.Server), test func(b *backend)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(newBackendOn(t, &pipes{make(chan net.Conn), configure}))
	})
}

// TestStreamEnds checks that a stream ends with its token and with the server.
func TestStreamEnds(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		token := decode[ledger.Token](b.post("/v1/orgs/acme/tokens", `{"name":"short","scope":"read"}`).want(201))
		l := b.listen("", token.Secret, nil)
		began := time.Now()
		b.delete("/v1/orgs/acme/tokens/" + token.ID).want(204)
		l.wantEnd() // revoked
		if took := time.Since(began); took > b.server.timing.check {
			t.Errorf("the stream of a revoked token ended after %v, want %v at most", took, b.server.timing.check)
		}

		l = b.listen("", b.reader, nil)
		b.server.EndStreams()
		l.wantEnd() // the server stops
	})
}

// TestAStreamOutlivesTheServersTimeouts checks that the timeouts of other
// requests do not end a stream.
func TestAStreamOutlivesTheServersTimeouts(t *testing.T) {
	timeouts := func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = 30*time.Second, time.Minute }
	inBubble(t, timeouts, func(b *backend) {
		l := b.listen("", b.reader, nil)
		time.Sleep(10 * time.Minute)
		b.putPolicy("*", `{"requirements":[]}`).want(200)
		l.next(1)
	})
}

// TestASilentStreamWritesComments checks that proxies see a comment now and then
// while nothing happens.
func TestASilentStreamWritesComments(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		l := b.listen("", b.reader, nil)
		for range 3 {
			began := time.Now()
			<-l.comments
			if took := time.Since(began); took != b.server.timing.silence {
				t.Errorf("a comment came after %v, want %v", took, b.server.timing.silence)
			}
		}
	})
}

// TestLastUse checks that the use of a token is noted while nobody waits for it.
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

// pipes is a network in memory.
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
