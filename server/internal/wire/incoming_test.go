package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/server/internal/budget"
)

// A complete body holds the memory for parsing it.
func TestReadBodyCountsParsing(t *testing.T) {
	const size, total = 10_000, 50_000
	full := errors.New("full")
	b := budget.New(budget.Config{Total: total, Share: total, Wait: time.Nanosecond, Waiting: 1, ShareWaiting: 1,
		ShareFull: full, TotalFull: full})
	lease, other := b.Lease("ada"), b.Lease("ada")
	r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
	body, err := ReadBody(httptest.NewRecorder(), r, size, lease)
	if err != nil || len(body) != size {
		t.Fatalf("%d bytes, %v, want %d", len(body), err, size)
	}

	if err := other.Grow(t.Context(), total-BodyMemory*size+1); !errors.Is(err, full) {
		t.Errorf("the body counts less than %d times its size: %v", BodyMemory, err)
	}
	if err := other.Grow(t.Context(), total-(BodyMemory+1)*size); err != nil {
		t.Errorf("the body counts more than %d times its size: %v", BodyMemory+1, err)
	}
	lease.Release()
	if err := other.Grow(t.Context(), total); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestReadBodyLimit(t *testing.T) {
	for size, want := range map[int]error{999: nil, 1000: nil, 1001: ErrTooLarge, 100_000: ErrTooLarge} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
		r.ContentLength = -1 // unknown
		if _, err := ReadBody(httptest.NewRecorder(), r, 1000, nil); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
}

// A body that is announced as too large is refused before it is read.
func TestReadBodyRefusesByLength(t *testing.T) {
	body := strings.NewReader(strings.Repeat("x", 1001))
	r := httptest.NewRequest("POST", "/", body)
	if _, err := ReadBody(httptest.NewRecorder(), r, 1000, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
	if body.Len() != 1001 {
		t.Errorf("%d bytes were read, want none", 1001-body.Len())
	}
}

// The buffer is no larger than the body needs, and never larger than the limit allows.
func TestReadBodyBuffer(t *testing.T) {
	full := errors.New("full")
	cases := []struct {
		name                string
		size, length, limit int64
		buffer              int64
	}{
		{"short", 100, 100, 3000, 101},
		{"short, of unknown length", 100, -1, 3000, firstBuffer},
		{"longer than the first buffer", 1500, 1500, 3000, 2 * firstBuffer},
		{"as long as the limit", 3000, 3000, 3000, 3001},
		{"as long as the limit, of unknown length", 3000, -1, 3000, 3001},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			total := tc.buffer + parsedSize*tc.size + 10
			b := budget.New(budget.Config{Total: total, Share: total, Wait: time.Nanosecond, Waiting: 1,
				ShareWaiting: 1, ShareFull: full, TotalFull: full})
			r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", int(tc.size))))
			r.ContentLength = tc.length
			if _, err := ReadBody(httptest.NewRecorder(), r, tc.limit, b.Lease("ada")); err != nil {
				t.Fatal(err)
			}

			for left, want := range map[int64]error{10: nil, 11: full} {
				other := b.Lease("bob")
				if err := other.Grow(t.Context(), left); !errors.Is(err, want) {
					t.Errorf("%d bytes of memory next to the body: %v, want %v", left, err, want)
				}
				other.Release()
			}
		})
	}
}

// exchange sends a request to a handler over a real connection, and returns the first
// response, which may be 100 Continue.
func exchange(t *testing.T, h http.HandlerFunc, request string) *http.Response {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	conn := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.OK(t, err)
	return response
}

// A client that waits for 100 Continue before it sends the body gets the response
// instead, complete and at once.
func TestRejectedBodyIsNotAskedFor(t *testing.T) {
	const request = "POST / HTTP/1.1\r\nHost: ledgerd\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
	drain := func(w http.ResponseWriter, r *http.Request) {
		DrainBody(w, r)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "rejected")
	}
	abandon := func(w http.ResponseWriter, r *http.Request) {
		linger := AbandonBody(w, r)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "rejected")
		linger()
	}

	for name, h := range map[string]http.HandlerFunc{"DrainBody": drain, "AbandonBody": abandon} {
		response := exchange(t, h, request)
		if response.StatusCode != http.StatusTeapot || response.ContentLength != int64(len("rejected")) {
			t.Errorf("%s: status %d and %d bytes, want one response of status %d",
				name, response.StatusCode, response.ContentLength, http.StatusTeapot)
		}
	}
}

// A deadlined records the deadlines for reading.
type deadlined struct {
	http.ResponseWriter
	deadlines []time.Time
}

func (d *deadlined) SetReadDeadline(at time.Time) error {
	d.deadlines = append(d.deadlines, at)
	return http.NewResponseController(d.ResponseWriter).SetReadDeadline(at)
}

// The time limit of a body ends with the body: the handler may take longer.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	const request = "POST / HTTP/1.1\r\nHost: ledgerd\r\nContent-Length: 4\r\n\r\nbody"
	for name, take := range map[string]func(http.ResponseWriter, *http.Request){
		"DrainBody": DrainBody,
		"ReadBody": func(w http.ResponseWriter, r *http.Request) {
			if body, err := ReadBody(w, r, 4, nil); err != nil || string(body) != "body" {
				t.Errorf("ReadBody: got %q, %v", body, err)
			}
		},
	} {
		var deadlines []time.Time
		exchange(t, func(w http.ResponseWriter, r *http.Request) {
			d := &deadlined{ResponseWriter: w}
			take(d, r)
			deadlines = d.deadlines
			if isPending(r) {
				t.Errorf("%s: the body has been read, but counts as pending", name)
			}
		}, request)
		if n := len(deadlines); n < 2 || deadlines[0].IsZero() || !deadlines[n-1].IsZero() {
			t.Errorf("%s: the deadlines are %v, want some, and none at the end", name, deadlines)
		}
	}
}
