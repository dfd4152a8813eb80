package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// requestStream sends the request for a stream that starts at the first event.
func (c *rawConn) requestStream(version, token string) {
	fmt.Fprintf(c, "GET /v1/orgs/acme/events?last_event_id=earliest HTTP/%s\r\nHost: ledger.example\r\n"+
		"Authorization: Bearer %s\r\nAccept: %s\r\n\r\n", version, token, typeEvents)
}

// Streams take little memory: neither the stack of a handler nor the buffers of net/http.
func TestFaultMemoryOfStreams(t *testing.T) {
	const streams, most = 400, 16 << 10
	b := newBackend(t)
	b.listen("", b.reader, nil).close()
	before := memory()
	for range streams {
		conn := must.Get(net.Dial("tcp", strings.TrimPrefix(b.url, "http://")))(t)
		t.Cleanup(func() { conn.Close() })
		(&rawConn{conn, t, nil}).requestStream("1.1", b.reader)
		if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 200"))); err != nil {
			t.Fatal(err)
		}
	}
	if each := int(memory()-before) / streams; each > most {
		t.Errorf("a stream takes %d bytes, want at most %d", each, most)
	}
}

// memory returns the size of heap and stacks, without garbage and unused stacks.
func memory() int64 {
	for range 5 { // each halves the stacks that are too large
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A stream that ends has a complete body, unless the client was disconnected. So no
// client mistakes a part of a message for a message.
func TestFaultEndsOfStreams(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		reads   bool
		want    error
	}{
		"complete":              {"1.1", true, nil},
		"HTTP/1.0":              {"1.0", true, nil},
		"not read":              {"1.1", false, io.ErrUnexpectedEOF},
		"not read, in HTTP/1.0": {"1.0", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, productionTimeouts, func(b *backend) {
				b.putPolicy("*", `{"requirements":[]}`).want(200)
				b.putPolicy("*", `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`).want(200)
				c := b.dial()
				c.requestStream(test.version, b.reader)
				resp, err := http.ReadResponse(c.r, nil)
				must.OK(t, err)
				if !resp.Close {
					t.Error("no Connection: close")
				}

				if test.reads {
					time.AfterFunc(time.Minute, b.server.EndStreams)
				} else {
					_, err := io.ReadFull(resp.Body, make([]byte, 100))
					must.OK(t, err)
					// It reads again when the server has just given up.
					time.Sleep(b.server.timing.Silence + b.server.timing.Stall + time.Second/2)
				}
				body, err := io.ReadAll(resp.Body)
				if !errors.Is(err, test.want) {
					t.Errorf("the body ended with %v, want %v", err, test.want)
				}
				if events := strings.Count(string(body), "\n\n"); test.reads && events < 3 {
					t.Errorf("%d messages in %q", events, body)
				}
				for line := range strings.Lines(string(body)) {
					if name, _, ok := strings.Cut(line, ":"); test.reads && !ok && line != "\n" {
						t.Errorf("the body has the line %q, which is no field", name)
					}
				}
				b.server.EndStreams()
				must.OK(t, b.server.WaitForStreams(b.t.Context()))
			})
		})
	}
}

// A client that sends more than its request still gets events, and so does one whose
// responses are recorded for the access log.
func TestFaultUnusualStreams(t *testing.T) {
	t.Run("client sends data", func(t *testing.T) {
		inBubble(t, productionTimeouts, func(b *backend) {
			c := b.dial()
			c.requestStream("1.1", b.reader)
			resp, err := http.ReadResponse(c.r, nil)
			must.OK(t, err)
			fmt.Fprint(c, "G")

			body := make(chan string)
			go func() {
				text, err := io.ReadAll(resp.Body)
				body <- fmt.Sprint(string(text), err)
			}()
			time.Sleep(time.Minute)
			b.putPolicy("*", `{"requirements":[]}`).want(200)
			time.Sleep(time.Second)
			b.server.EndStreams()
			if got := <-body; !strings.Contains(got, "event: policy") || !strings.HasSuffix(got, "<nil>") {
				t.Errorf("got %q", got)
			}
		})
	})

	t.Run("client sends data later", func(t *testing.T) {
		inBubble(t, productionTimeouts, func(b *backend) {
			c := b.dial()
			c.requestStream("1.1", b.reader)
			resp, err := http.ReadResponse(c.r, nil)
			must.OK(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, len("retry: 3000\n\n")))
			must.OK(t, err)
			time.Sleep(time.Second) // the stream has left its handler
			fmt.Fprint(c, "G")
			time.Sleep(time.Second)
			b.putPolicy("*", `{"requirements":[]}`).want(200)
			event := make([]byte, len("event: policy"))
			if _, err := io.ReadFull(resp.Body, event); string(event) != "event: policy" {
				t.Errorf("got %q, %v", event, err)
			}
			b.server.EndStreams()
			must.OK(t, b.server.WaitForStreams(b.t.Context()))
		})
	})

	t.Run("client reads no end", func(t *testing.T) {
		inBubble(t, nil, func(b *backend) {
			c := b.dial()
			c.requestStream("1.1", b.reader)
			resp, err := http.ReadResponse(c.r, nil)
			must.OK(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, len("retry: 3000\n\n")))
			must.OK(t, err)
			time.Sleep(time.Second)
			b.server.EndStreams()
			ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
			defer cancel()
			must.OK(t, b.server.WaitForStreams(ctx))
		})
	})

	t.Run("access log", func(t *testing.T) {
		var log strings.Builder
		b := newBackend(t, func(c *Config) {
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		l := b.listen("", b.reader, nil)
		b.putPolicy("*", `{"requirements":[]}`).want(200)
		l.next(1)
		b.server.EndStreams()
		must.OK(t, b.server.WaitForStreams(b.t.Context()))
		l.wantEnd()
	})
}

// WaitForStreams waits for all streams.
func TestFaultStreamsEndBeforeTheStore(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		must.OK(t, b.server.WaitForStreams(b.t.Context()))
		for range 10 {
			b.listen("", b.reader, nil)
		}
		waited := make(chan error)
		for range 3 {
			go func() { waited <- b.server.WaitForStreams(b.t.Context()) }()
		}
		time.Sleep(10 * time.Minute)
		select {
		case err := <-waited:
			t.Fatalf("WaitForStreams returned %v before the streams ended", err)
		default:
		}

		b.server.EndStreams()
		for range 3 {
			must.OK(t, <-waited)
		}
		if n := b.server.feeds.Len(); n > 0 {
			t.Errorf("%d feeds are open", n)
		}
	})
}

// WaitForStreams waits for the streams that are open, any number of times, and not longer
// than its context allows.
func TestFaultWaitForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &openStreams{total: 9, perOrg: 9, perToken: 9, open: make(map[string]int)}
		for range 2 {
			release, err := l.acquire("acme", "token")
			must.OK(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			if err := l.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("got %v after %v, want the end of the context after a minute", err, time.Since(start))
			}

			waited := make(chan error, 1)
			go func() { waited <- l.wait(t.Context()) }()
			synctest.Wait()
			release()
			must.OK(t, <-waited)
		}
	})
}

// Thousands of streams of a token do not each look it up.
func TestFaultRechecksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rechecks{by: make(map[credential]recheck)}
		revoked := errors.New("revoked")
		var checks atomic.Int64
		check := func() error {
			runtime.Gosched()
			if checks.Add(1) > 2 {
				return revoked
			}
			return nil
		}
		ask := func(c credential, want error) {
			t.Helper()
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					if err := r.of(c, check); err != want {
						t.Errorf("got %v, want %v", err, want)
					}
				})
			}
			wg.Wait()
		}

		token, session := credential{hash: [32]byte{1}}, credential{hash: [32]byte{1}, session: true}
		ask(token, nil)
		ask(session, nil) // of another kind
		ask(token, nil)
		if n := checks.Load(); n != 2 {
			t.Errorf("%d checks, want 2", n)
		}
		time.Sleep(recheckLife)
		ask(token, revoked)
		if n := checks.Load(); n != 3 || len(r.by) != 1 {
			t.Errorf("%d checks, %d results, want 3 and 1", n, len(r.by))
		}
	})
}

// The check of a token serves the streams of the next second, even if the stream that began
// it ends. The host's administrator has no token.
func TestFaultRecheckOfACaller(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		must.OK(t, b.server.recheck(b.t.Context(), caller{token: ledger.Token{Scope: ledger.Host}}))

		token := decode[ledger.Token](b.post("/v1/orgs/acme/tokens", `{"name":"short","scope":"read"}`).want(201))
		c, err := b.server.bySecret(b.t.Context(), token.Secret, "")
		must.OK(t, err)
		ended, cancel := context.WithCancel(b.t.Context())
		cancel()
		must.OK(t, b.server.recheck(ended, c))
		b.delete("/v1/orgs/acme/tokens/" + token.ID).want(204)
		must.OK(t, b.server.recheck(b.t.Context(), c))
		time.Sleep(recheckLife)
		if err := b.server.recheck(b.t.Context(), c); !isCode(err, ledger.CodeUnauthenticated) {
			t.Errorf("got %v, want that the token was revoked", err)
		}
	})
}
