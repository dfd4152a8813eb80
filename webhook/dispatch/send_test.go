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

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestAnswers has one delivery answered in every way that a receiver can.
func TestAnswers(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	redirect := func(code int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", to); w.WriteHeader(code) }
	}
	for _, c := range []struct {
		what      string
		answer    http.HandlerFunc
		tls       bool
		status    int
		err       string
		body      string
		truncated bool
	}{
		{what: "200", answer: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "thanks") }, status: 200,
			body: "thanks"},
		{what: "299", answer: status(299), status: 299},
		{what: "400", answer: status(400), status: 400, err: "the receiver returned 400 Bad Request"},
		{what: "500", answer: status(500), status: 500, err: "the receiver returned 500 Internal Server Error"},
		{what: "599", answer: status(599), status: 599, err: "the receiver returned 599"},
		{what: "a redirect", answer: redirect(302, "/other"), status: 302,
			err: "returned 302 Found: redirects are not followed; this one points to the same host"},
		{what: "a redirect to metadata", answer: redirect(307, "http://169.254.169.254/latest/meta-data/"), status: 307,
			err: "points to http://169.254.169.254"},
		{what: "a redirect with secrets",
			answer: redirect(302, "https://ada:hunter2@example.com/hunter3?key=hunter4#hunter5"), status: 302,
			err: "points to https://example.com"},
		{what: "a long redirect", answer: redirect(308, "http://"+strings.Repeat("x", 1000)), status: 308,
			err: "points to http://" + strings.Repeat("x", 193) + "…"},
		{what: "304", answer: status(304), status: 304, err: "redirects are not followed"},
		{what: "it hangs", answer: hang, err: "no response within 400ms"},
		{what: "it closes", answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			err: "closed the connection without a response"},
		{what: "it drips after 200", answer: drip(200), status: 200, body: "drop", truncated: true},
		{what: "it drips after 500", answer: drip(500), status: 500, err: "returned 500", body: "drop", truncated: true},
		{what: "bytes that are no text", answer: func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a\xff\xfeb\x00c")
		}, status: 200, body: "a\uFFFDb\x00c"},
		{what: "a bad certificate", answer: status(200), tls: true,
			err: "invalid certificate: x509: certificate signed by unknown authority"},
		{what: "a huge header", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, err: "response headers exceeded 65536 bytes"},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t)
			r := newReceiver(c.answer)
			r.Config.ErrorLog = discard
			if c.tls {
				r.StartTLS()
			} else {
				r.Start()
			}
			defer r.Close()
			defer r.CloseClientConnections()
			w := b.webhook(r.URL)
			id := b.ping(w).ID
			b.start(func(cfg *dispatch.Config) { cfg.Timeout = 400 * time.Millisecond })
			d := b.attempted(w, id, 1)
			a := d.History[0]
			want := ledger.DeliverySucceeded
			if c.err != "" {
				want = ledger.DeliveryPending
			}
			if d.Status != want || a.Response.Status != c.status || (c.err == "") != (a.Error == "") ||
				!strings.Contains(a.Error, c.err) {
				t.Errorf("%s after %d, %q; want %s, %d, %q", d.Status, a.Response.Status, a.Error, want, c.status, c.err)
			}
			if strings.Contains(a.Error, "hunter") || strings.Contains(a.Error, "meta-data") {
				t.Errorf("the error %q tells where on its host a redirect points", a.Error)
			}
			if !strings.HasPrefix(a.Response.Body, c.body) || c.body == "" && a.Response.Body != "" ||
				a.Response.Truncated != c.truncated {
				t.Errorf("body %q (truncated: %t), want %q (%t)", a.Response.Body, a.Response.Truncated, c.body, c.truncated)
			}
			if a.Number != 1 || a.DurationMS > 2000 || a.Request.URL != w.URL {
				t.Errorf("the attempt is %+v", a)
			}
			if r.count() > 1 {
				t.Errorf("%d requests came", r.count())
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

// TestGigabyte has an answer that nobody wants to read.
func TestGigabyte(t *testing.T) {
	var written atomic.Int64
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat("ä", 32<<10) + "x") // cut in the middle of a character, somewhere
		for range 1 << 14 {
			n, err := w.Write(chunk)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	b := newBench(t)
	w := b.webhook(r.URL)
	id := b.ping(w).ID
	b.start(nil)
	d := b.attempted(w, id, 1)
	a := d.History[0].Response
	if d.Status != ledger.DeliverySucceeded || len(a.Body) != 16<<10 || !a.Truncated {
		t.Errorf("%s with %d bytes kept (truncated: %t)", d.Status, len(a.Body), a.Truncated)
	}
	r.Close() // waits for the handler
	if n := written.Load(); n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestNoConnection has receivers that do not get as far as to a request.
func TestNoConnection(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, closed.Close())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer silent.Close()
	for _, c := range []struct{ what, url, err string }{
		{"nobody listens", "http://" + closed.Addr().String(), "connection refused"},
		{"it never answers the handshake", "https://" + silent.Addr().String(), "no connection within 200ms"},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t)
			w := b.webhook(c.url)
			id := b.ping(w).ID
			b.start(func(cfg *dispatch.Config) { cfg.ConnectTimeout = 200 * time.Millisecond })
			if d := b.attempted(w, id, 1); !strings.Contains(d.LastError, c.err) {
				t.Errorf("error %q, want %q", d.LastError, c.err)
			}
		})
	}
}

// TestKeptConnectionIsClosed has a receiver that closes a connection just when
// the next request goes out on it: that is no failure.
func TestKeptConnectionIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
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
				http.ReadRequest(r) // and no answer
			}
			conn.Close()
		}
	}()
	b := newBench(t)
	w := b.webhook("http://" + listener.Addr().String())
	b.start(nil)
	for range 5 {
		if d := b.attempted(w, b.ping(w).ID, 1); d.Status != ledger.DeliverySucceeded {
			t.Fatalf("%s: %s", d.Status, d.LastError)
		}
	}
}

func TestHeadersAreKeptInBounds(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%02d", i), strings.Repeat("y", 300))
		}
		w.Header().Set("A-Odd", "\xff")
	})
	b := newBench(t)
	w := b.webhook(r.URL)
	id := b.ping(w).ID
	b.start(nil)
	size, headers := 0, b.attempted(w, id, 1).History[0].Response.Headers
	for name, values := range headers {
		size += len(name) + len(strings.Join(values, ""))
	}
	if size > 8<<10 || size < 7<<10 {
		t.Errorf("%d bytes are kept", size)
	}
	if got := headers["A-Odd"]; len(got) != 1 || got[0] != "\uFFFD" {
		t.Errorf("A-Odd is %q", got)
	}
}

// TestPanic has something go wrong inside: that is an attempt that has failed.
func TestPanic(t *testing.T) {
	b := newBench(t)
	w := b.webhook("https://ci.example.com")
	id := b.ping(w).ID
	d := dispatch.New(dispatch.Config{Outbox: b.Store})
	d.SetTransport(roundTrip(func(*http.Request) (*http.Response, error) { panic(errors.New("a bug")) }))
	run(t, d)
	if got := b.attempted(w, id, 1); got.Status != ledger.DeliveryPending || got.LastError != "internal error: a bug" {
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
			t.Errorf("clip(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}
