package dispatch_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestResponses sends a delivery to receivers with every kind of response.
func TestResponses(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	redirect := func(code int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", to); w.WriteHeader(code) }
	}

	for _, c := range []struct {
		what      string
		handler   http.HandlerFunc
		tls       bool
		hangs     bool // it is still sending at the time limit
		status    int
		err       string
		body      string
		truncated bool
	}{
		{what: "200", handler: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "thanks") }, status: 200,
			body: "thanks"},
		{what: "299", handler: status(299), status: 299},
		{what: "400", handler: status(400), status: 400, err: "the receiver returned 400 Bad Request"},
		{what: "500", handler: status(500), status: 500, err: "the receiver returned 500 Internal Server Error"},
		{what: "599", handler: status(599), status: 599, err: "the receiver returned 599"},
		{what: "a redirect", handler: redirect(302, "/other"), status: 302,
			err: "returned 302 Found: redirects are not followed; this one points to the same host"},
		{what: "a redirect to metadata", handler: redirect(307, "http://169.254.169.254/latest/meta-data/"), status: 307,
			err: "points to http://169.254.169.254"},
		{what: "a redirect with secrets",
			handler: redirect(302, "https://ada:hunter2@example.com/hunter3?key=hunter4#hunter5"), status: 302,
			err: "points to https://example.com"},
		{what: "a long redirect", handler: redirect(308, "http://"+strings.Repeat("x", 1000)), status: 308,
			err: "points to http://" + strings.Repeat("x", 193) + "…"},
		{what: "304", handler: status(304), status: 304, err: "redirects are not followed"},
		{what: "hangs", handler: hang, hangs: true, err: "no response within 400ms"},
		{what: "closes the connection", handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			err: "closed the connection without a response"},
		{what: "drips after 200", handler: drip(200), hangs: true, status: 200, body: "drop", truncated: true},
		{what: "drips after 500", handler: drip(500), hangs: true, status: 500, err: "returned 500", body: "drop",
			truncated: true},
		{what: "invalid UTF-8", handler: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a\xff\xfeb\x00c")
		}, status: 200, body: "a\uFFFDb\x00c"},
		{what: "a bad certificate", handler: status(200), tls: true,
			err: "invalid certificate: x509: certificate signed by unknown authority"},
		{what: "a huge header", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, err: "response headers exceeded 65536 bytes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFixture(t)
			r := newReceiver(c.handler)
			r.Config.ErrorLog = discard
			if c.tls {
				r.StartTLS()
			} else {
				r.Start()
			}
			defer r.Close()
			defer r.CloseClientConnections()

			w := f.webhook(r.URL)
			id := f.ping(w).ID
			f.start(func(cfg *dispatch.Config) {
				if c.hangs {
					cfg.Timeout = 400 * time.Millisecond
				}
			})
			d := f.attempted(w, id, 1)
			a := d.History[0]
			want := outbound.DeliverySucceeded
			if c.err != "" {
				want = outbound.DeliveryPending
			}
			if d.Status != want || a.Response.Status != c.status || (c.err == "") != (a.Error == "") ||
				!strings.Contains(a.Error, c.err) {
				t.Errorf("%s with %d, %q; want %s with %d, %q", d.Status, a.Response.Status, a.Error, want, c.status, c.err)
			}
			if strings.Contains(a.Error, "hunter") || strings.Contains(a.Error, "meta-data") {
				t.Errorf("the error %q has more of a redirect than its host", a.Error)
			}
			if !strings.HasPrefix(a.Response.Body, c.body) || c.body == "" && a.Response.Body != "" ||
				a.Response.Truncated != c.truncated {
				t.Errorf("body %q (truncated: %t), want %q (%t)", a.Response.Body, a.Response.Truncated, c.body, c.truncated)
			}
			if a.Number != 1 || a.DurationMS > 10_000 || a.Request.URL != w.URL {
				t.Errorf("attempt %+v", a)
			}
			if r.count() > 1 {
				t.Errorf("%d requests, want 1", r.count())
			}
		})
	}
}

func hang(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }

func drip(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(status)
		for q.Context().Err() == nil {
			io.WriteString(w, "drop")
			http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// TestHugeResponse checks that only the beginning of a response of a gigabyte is read.
func TestHugeResponse(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("ä", 32<<10) + "x") // so that the cut is in the middle of a character
		for range 1 << 14 {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})

	f := newFixture(t)
	w := f.webhook(r.URL)
	id := f.ping(w).ID
	f.start(nil)
	d := f.attempted(w, id, 1)
	a := d.History[0].Response
	if d.Status != outbound.DeliverySucceeded || len(a.Body) != 16<<10 || !a.Truncated {
		t.Errorf("%s with %d bytes stored (truncated: %t)", d.Status, len(a.Body), a.Truncated)
	}
	r.Close() // waits for the handler
	if n := written.Load(); n > 64<<20 {
		t.Errorf("the receiver could write %d bytes", n)
	}
}

// TestNoConnection uses receivers to which no connection is possible.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	must.OK(t, closed.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer silent.Close()
	for _, c := range []struct{ what, url, err string }{
		{"no listener", "http://" + closed.Addr().String(), "connection refused"},
		{"no TLS handshake", "https://" + silent.Addr().String(), "no connection within 200ms"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := newFixture(t)
			w := f.webhook(c.url)
			id := f.ping(w).ID
			f.start(func(cfg *dispatch.Config) { cfg.ConnectTimeout = 200 * time.Millisecond })
			if d := f.attempted(w, id, 1); !strings.Contains(d.LastError, c.err) {
				t.Errorf("error %q, want %q", d.LastError, c.err)
			}
		})
	}
}

// TestIdleConnectionIsClosed checks that an attempt does not fail if the receiver closes
// an idle connection just when the request is sent on it.
func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			if q, err := http.ReadRequest(r); err == nil {
				io.Copy(io.Discard, q.Body)
				io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				http.ReadRequest(r) // without a response
			}
			conn.Close()
		}
	}()

	f := newFixture(t)
	w := f.webhook("http://" + listener.Addr().String())
	f.start(nil)
	for range 5 {
		if d := f.attempted(w, f.ping(w).ID, 1); d.Status != outbound.DeliverySucceeded {
			t.Fatalf("%s: %s", d.Status, d.LastError)
		}
	}
}

func TestStoredHeadersAreBounded(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%02d", i), strings.Repeat("y", 300))
		}
		w.Header().Set("A-Odd", "\xff")
	})
	f := newFixture(t)
	w := f.webhook(r.URL)
	id := f.ping(w).ID
	f.start(nil)

	size, headers := 0, f.attempted(w, id, 1).History[0].Response.Headers
	for name, values := range headers {
		size += len(name) + len(strings.Join(values, ""))
	}
	if size > 8<<10 || size < 7<<10 {
		t.Errorf("%d bytes of headers are stored, want 7 to 8 KiB", size)
	}
	if got := headers["A-Odd"]; len(got) != 1 || got[0] != "\uFFFD" {
		t.Errorf("A-Odd = %q", got)
	}
}

// TestPanic panics during an attempt, which then fails.
func TestPanic(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.webhook("https://ci.example.com")
	id := f.ping(w).ID
	d := dispatch.New(dispatch.Config{Outbox: f.Store})
	d.SetTransport(roundTrip(func(*http.Request) (*http.Response, error) { panic(errors.New("a bug")) }))
	run(t, d)
	if got := f.attempted(w, id, 1); got.Status != outbound.DeliveryPending || got.LastError != "internal error: a bug" {
		t.Errorf("%s: %s", got.Status, got.LastError)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abc", 5, "abc"}, {"abc", 2, "ab"}, {"aä", 2, "a"}, {"a€", 3, "a"}, {"a😀", 4, "a"}, {"a😀b", 5, "a😀"},
		{"a\xff", 9, "a\uFFFD"}, {"\xff\xff\xff", 3, "\uFFFD"}, {"a\xff", 2, "a"}, {"\x80\x80\x80\x80", 4, "\uFFFD"},
	} {
		got := dispatch.Clip(c.text, c.n, false)
		if got != c.want || len(got) > c.n || !utf8.ValidString(got) {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
