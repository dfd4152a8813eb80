package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/wire"
)

// A rawConn is a connection to a backend on which a test writes requests itself.
type rawConn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func (b *backend) dial() *rawConn {
	b.t.Helper()
	conn, err := b.stream.Transport.(*http.Transport).DialContext(b.t.Context(), "tcp", "ledger.example")
	must.OK(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	return &rawConn{conn, b.t.(*testing.T), bufio.NewReader(conn)}
}

// request sends the head of a request with a body of size bytes.
func (c *rawConn) request(method, path, token string, size int) {
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: ledger.example\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", method, path, token, size)
}

// response reads a response.
func (c *rawConn) response() response {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	must.OK(c.t, err)
	body := must.Get(io.ReadAll(resp.Body))(c.t)
	if resp.Close { // ReadResponse has removed the header
		resp.Header.Set("Connection", "close")
	}
	return response{c.t, "raw request", resp.StatusCode, resp.Header, body}
}

// wantClosed checks that the server closes the connection within a second.
func (c *rawConn) wantClosed() {
	c.t.Helper()
	began := time.Now()
	if _, err := c.r.ReadByte(); err == nil || time.Since(began) > time.Second+time.Millisecond {
		c.t.Errorf("read %v after %v, want the end of the connection", err, time.Since(began))
	}
}

// productionTimeouts are those of internal/service.
func productionTimeouts(s *http.Server) {
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout = 10*time.Second, time.Minute, time.Minute
}

func TestFaultSlowBodies(t *testing.T) {
	registration := func(size int) string { return strings.Repeat(" ", size-2) + "{}" }
	for name, test := range map[string]struct {
		size   int // of the body
		rate   int // bytes per second that the client sends; it stops after sends
		sends  int
		status int
		took   time.Duration // until the response
	}{
		"complete":            {5_000, 5_000, 5_000, 201, time.Second},
		"nothing":             {100_000, 1, 0, 408, 5 * time.Second},
		"half":                {4 << 20, 1024, 1024, 408, 6 * time.Second},
		"below the rate":      {100_000, 500, 100_000, 408, 9 * time.Second},
		"at twice the rate":   {100_000, 2048, 100_000, 201, 49 * time.Second},
		"more than a minute":  {200_000, 2048, 200_000, 408, 60 * time.Second},
		"stops at the middle": {100_000, 10_000, 50_000, 408, (5 + 49) * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, productionTimeouts, func(b *backend) {
				c, began := b.dial(), time.Now()
				var sending sync.WaitGroup
				defer sending.Wait()
				defer c.Close()
				c.request("PUT", commitPath(commitID(1)), b.writer, test.size)
				sending.Go(func() {
					for body := registration(test.size)[:test.sends]; body != ""; time.Sleep(time.Second) {
						n := min(test.rate, len(body))
						if _, err := io.WriteString(c, body[:n]); err != nil {
							return // refused
						}
						body = body[n:]
					}
				})

				resp := c.response().want(test.status)
				if took := time.Since(began); took < test.took-2*time.Second || took > test.took+2*time.Second {
					t.Errorf("response after %v, want %v", took, test.took)
				}
				if test.status == 408 {
					resp.wantProblem(408, ledger.CodeRequestTimeout)
					c.wantClosed()
				} else {
					c.request("GET", "/v1/token", b.writer, 0)
					c.response().want(200)
				}
			})
		})
	}
}

// Callers who are not authenticated get their response before they send the body.
func TestFaultRefusedBeforeTheBody(t *testing.T) {
	for name, test := range map[string]struct {
		path   string
		status int
	}{
		"no such token": {attestationsPath, 401},
		"no such path":  {"/v2/attestations", 404},
		"method":        {"/v1/orgs/acme/repos/api/radar/x", 404},
	} {
		for _, size := range []int{100, 100_000, 4 << 20} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				inBubble(t, productionTimeouts, func(b *backend) {
					c := b.dial()
					began := time.Now()
					c.request("POST", test.path, "ldg_none", size)
					resp := c.response().want(test.status)
					if took := time.Since(began); took > 0 {
						t.Errorf("response after %v", took)
					}
					if resp.header.Get("Connection") != "close" {
						t.Errorf("headers %v", resp.header)
					}
					c.wantClosed()
				})
			})
		}
	}
}

// A client that sends its whole body before it reads the early response still gets it:
// the server does not close the connection at once, which would reset it.
func TestFaultEarlyResponseIsReadable(t *testing.T) {
	b := newBackend(t)
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(b.url, "http://")))(t)
	defer conn.Close()
	c := &rawConn{conn, t, bufio.NewReader(conn)}
	c.request("POST", attestationsPath, "ldg_none", 100_000)
	for range 10 {
		_, err := io.WriteString(c, strings.Repeat("x", 10_000))
		must.OK(t, err)
		time.Sleep(10 * time.Millisecond)
	}
	c.response().wantProblem(401, ledger.CodeUnauthenticated)
}

// The rest of a rejected body is read only if the caller is authenticated, and not
// for long.
func TestFaultRejectedBodiesAreDrained(t *testing.T) {
	inBubble(t, productionTimeouts, func(b *backend) {
		c := b.dial()
		for range 2 { // the connection is used again
			go func() {
				c.request("POST", attestationsPath, b.reader, 4<<20)
				io.WriteString(c, strings.Repeat("x", 4<<20))
			}()
			c.response().wantProblem(403, ledger.CodeForbidden)
		}

		began := time.Now()
		c.request("POST", attestationsPath, b.reader, 4<<20)
		go io.WriteString(c, "half")
		resp := c.response()
		resp.wantProblem(403, ledger.CodeForbidden)
		if took := time.Since(began); took > 6*time.Second || resp.header.Get("Connection") != "close" {
			b.t.Errorf("response after %v with %v", took, resp.header)
		}
		c.wantClosed()
	})
}

// A token has a bounded number of concurrent reads. Others and its writes are not
// affected.
func TestFaultConcurrentReads(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		token := decode[ledger.Token](b.get("/v1/token").want(200))
		var held []interface{ Release() }
		for range readsPerToken() {
			slot := b.server.budgets.reads.Lease(token.ID)
			must.OK(b.t, slot.Grow(b.t.Context(), 1))
			held = append(held, slot)
		}

		began := time.Now()
		for _, path := range []string{"/v1/orgs/acme/repos", "/v1/orgs/acme/repos/api/commits"} {
			resp := b.get(path)
			resp.wantProblem(429, ledger.CodeTooManyRequests)
			if resp.header.Get("Retry-After") == "" {
				b.t.Errorf("headers %v", resp.header)
			}
		}
		if took := time.Since(began); took != 2*maxWait {
			b.t.Errorf("refused after %v, want %v each", took, maxWait)
		}
		list := request{method: "GET", path: "/v1/orgs/acme/repos", token: b.reader,
			header: map[string]string{"Accept": typeEvents}} // does not make it a stream
		b.send(list).wantProblem(429, ledger.CodeTooManyRequests)
		preview := request{method: "POST", path: "/v1/orgs/acme/repos/api/radar", token: b.reader, body: `{}`}
		b.send(preview).wantProblem(429, ledger.CodeTooManyRequests)

		began = time.Now()
		b.put(commitPath(commitID(1)), `{}`).want(201)
		b.send(request{method: "GET", path: commitPath(commitID(1)), token: b.writer}).want(200)
		b.send(request{method: "GET", path: "/readyz"}).want(200)
		b.listen("", b.reader, nil)
		if took := time.Since(began); took > 0 {
			b.t.Errorf("others waited for %v", took)
		}
		b.server.EndStreams()

		for _, slot := range held {
			slot.Release()
		}
		b.get("/v1/orgs/acme/repos").want(200)
	})
}

// A failed read does not count while the rest of its body is drained.
func TestFaultDrainingIsNoRead(t *testing.T) {
	inBubble(t, productionTimeouts, func(b *backend) {
		for range readsPerToken() {
			b.dial().request("GET", commitPath(commitID(9)), b.reader, 1000)
		}
		synctest.Wait()
		began := time.Now()
		b.get("/v1/orgs/acme/repos").want(200)
		if took := time.Since(began); took > 0 {
			b.t.Errorf("another read waited for %v", took)
		}
	})
}

// All tokens together have a bounded number of concurrent reads. The administrator of the
// host is not limited.
func TestFaultReadsOfAll(t *testing.T) {
	inBubble(t, nil, func(b *backend) {
		for i := range readShares * readsPerToken() {
			must.OK(b.t, b.server.budgets.reads.Lease(fmt.Sprint(i/readsPerToken())).Grow(b.t.Context(), 1))
		}
		began := time.Now()
		b.host("GET", "/v1/orgs/acme/repos", "").want(200)
		if took := time.Since(began); took > 0 {
			b.t.Errorf("the administrator waited for %v", took)
		}
		resp := b.get("/v1/orgs/acme/repos")
		resp.wantProblem(503, ledger.CodeServerBusy)
		if resp.header.Get("Retry-After") == "" {
			b.t.Errorf("headers %v", resp.header)
		}
	})
}

// Responses that nobody reads take a bounded amount of memory, for a bounded time,
// and keep out nobody else, and no writes with the same token.
func TestFaultUnreadResponses(t *testing.T) {
	inBubble(t, productionTimeouts, func(b *backend) {
		const size, clients = 60_000, 300
		writer := decode[ledger.Token](b.send(request{method: "GET", path: "/v1/token", token: b.writer}).want(200))
		b.put(commitPath(commitID(1)), `{"message":"`+strings.Repeat("m", size)+`"}`).want(201)
		var begun atomic.Int64
		for range clients {
			c := b.dial()
			c.request("GET", commitPath(commitID(1)), b.writer, 0)
			go func() {
				if _, err := c.r.Peek(1); err == nil {
					begun.Add(1)
				}
			}()
			synctest.Wait()
		}
		if most := int64(minMemory / size); begun.Load() < most/2 || begun.Load() > most {
			b.t.Errorf("%d responses have begun, want at most %d", begun.Load(), most)
		}

		began := time.Now()
		b.get(commitPath(commitID(1))).want(200)
		b.put(commitPath(commitID(2)), `{}`).want(201)
		writes := b.server.Memory(writer.ID, &http.Request{Method: "PUT"})
		must.OK(b.t, writes.Grow(b.t.Context(), minMemory)) // they have a share of their own
		writes.Release()
		if took := time.Since(began); took > 0 {
			b.t.Errorf("others waited for %v", took)
		}

		read := request{method: "GET", path: commitPath(commitID(1)), token: b.writer}
		b.send(read).wantProblem(429, ledger.CodeTooManyRequests)
		time.Sleep(time.Minute) // the writes have timed out
		b.send(read).want(200)
	})
}

// A write that is on disk is not refused, however much memory the token's requests
// take.
func TestFaultWritesAreNotRefusedAfterwards(t *testing.T) {
	inBubble(t, productionTimeouts, func(b *backend) {
		token := decode[ledger.Token](b.send(request{method: "GET", path: "/v1/token", token: b.writer}).want(200))
		request := &http.Request{Method: "PUT"}
		c := b.dial()
		body := strings.Repeat(" ", 100_000) + "{}"
		c.request("PUT", commitPath(commitID(1)), b.writer, len(body))
		io.WriteString(c, body[:50_000])
		synctest.Wait()

		others := b.server.Memory(token.ID, request)
		must.OK(b.t, others.Grow(b.t.Context(), minMemory/2))
		more := b.server.Memory(token.ID, request)
		must.OK(b.t, more.Grow(b.t.Context(), minMemory/2-200_000))
		go io.WriteString(c, body[50_000:])
		c.response().want(201)
	})
}

// The memory of a body follows what has arrived.
func TestFaultBodiesGrowByWhatArrives(t *testing.T) {
	inBubble(t, productionTimeouts, func(b *backend) {
		token := decode[ledger.Token](b.send(request{method: "GET", path: "/v1/token", token: b.writer}).want(200))
		for range 1000 {
			c := b.dial()
			c.request("PUT", commitPath(commitID(1)), b.writer, 4<<20)
			io.WriteString(c, `{"message":"`)
		}
		synctest.Wait()
		rest := b.server.Memory(token.ID, &http.Request{Method: "PUT"})
		began := time.Now()
		must.OK(b.t, rest.Grow(b.t.Context(), minMemory-1000*1024))
		if took := time.Since(began); took > 0 {
			b.t.Errorf("1,000 bodies of 12 bytes take more than 1 KiB each")
		}
		rest.Release()
		time.Sleep(10 * time.Second) // the bodies have timed out
		must.OK(b.t, rest.Grow(b.t.Context(), minMemory))
	})
}

// All orgs together have a bounded number of streams.
func TestFaultStreamsOfAll(t *testing.T) {
	b := newBackend(t, func(c *Config) { c.Limits.Streams = 2 })
	b.listen("", b.reader, nil)
	second := b.listen("", b.writer, nil)
	resp := b.send(request{method: "GET", path: "/v1/orgs/acme/events", token: b.admin,
		header: map[string]string{"Accept": typeEvents}})
	if p := resp.wantProblem(503, ledger.CodeTooManyStreams); !strings.Contains(p.Detail, "ulimit -n") {
		t.Errorf("detail %q", p.Detail)
	}
	if resp.header.Get("Retry-After") == "" {
		t.Errorf("headers %v", resp.header)
	}

	second.close()
	must.Wait(t, "the end of the second stream", func() bool {
		b.server.streams.mu.Lock()
		defer b.server.streams.mu.Unlock()
		return b.server.streams.all == 1
	})
	b.listen("", b.admin, nil)
}

func TestBudgetHoldsTheLargestBody(t *testing.T) {
	const maxBody, size = 1 << 30, wire.BodyMemory << 30
	synctest.Test(t, func(t *testing.T) {
		b := newBudgets(maxBody)
		request := &http.Request{Method: "PUT"}
		for range 2 {
			must.OK(t, b.memoryOf("", request).Grow(t.Context(), size/2))
		}
		if err := b.memoryOf("", request).Grow(t.Context(), 1); err == nil {
			t.Error("the token gets more than the largest body takes")
		}

		began := time.Now()
		for i := range memoryShares - 1 { // other tokens
			must.OK(t, b.memoryOf(fmt.Sprint(i), request).Grow(t.Context(), size))
		}
		if time.Since(began) > 0 {
			t.Error("the largest body waits")
		}
		if err := b.memoryOf("one more", request).Grow(t.Context(), 1); err == nil {
			t.Error("all tokens together get more than their shares")
		}
	})
}
