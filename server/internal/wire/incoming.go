package wire

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/internal/budget"
)

const (
	bodyGrace = 5 * time.Second
	bodyRate  = 1 << 10     // bytes per second
	bodyTime  = time.Minute // maximum time for a body
	drainTime = 10 * time.Second
	// maxDrain is the number of bytes that DrainBody reads.
	maxDrain = 16 << 20

	// lingerTime is how long a connection is kept open for the client to read the
	// response.
	lingerTime = 500 * time.Millisecond

	firstBuffer = 1 << 10 // bytes
	// parsedSize is the approximate memory of a parsed body, as a multiple of its size,
	// in addition to the body itself.
	parsedSize = 2
	// BodyMemory is the memory of a body while the request is handled, as a multiple of
	// its size.
	BodyMemory = 1 + parsedSize
)

// ErrTooLarge is returned by ReadBody for a body that is over the limit.
var ErrTooLarge = errors.New("the body is too large")

// ReadBody reads the body of a request, of at most limit bytes. Its buffer grows with
// what has arrived, whatever the request announces. The lease grows with the buffer,
// and holds the memory for parsing the body when ReadBody returns.
//
// A client that sends less than 1 KiB per second, after 5 seconds, or takes longer
// than a minute, gets an error with CodeRequestTimeout.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, lease *budget.Lease) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, ErrTooLarge
	}
	if !isPending(r) {
		return nil, nil
	}

	size := int64(firstBuffer)
	if r.ContentLength > 0 {
		size = min(size, r.ContentLength+1)
	}
	in := newArriving(w, r, bodyTime)
	var body []byte
	for {
		if len(body) == cap(body) {
			var err error
			if body, err = in.enlarge(body, min(max(size, 2*int64(cap(body))), limit+1), lease); err != nil {
				return nil, err
			}
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]

		switch {
		case int64(len(body)) > limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			in.end()
			return body, lease.Grow(r.Context(), parsedSize*int64(len(body)))
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, ledger.Errorf(ledger.CodeRequestTimeout, "the body arrived too slowly: %d bytes in %v "+
				"(send at least %d bytes per second)", len(body), time.Since(in.start).Round(time.Second), bodyRate)
		case err != nil:
			return nil, ledger.Errorf(ledger.CodeInvalidJSON, "the body was cut off after %d bytes", len(body))
		}
	}
}

// DrainBody discards the rest of a rejected body, up to 16 MiB and 10 seconds, so that
// the client can use the connection again.
func DrainBody(w http.ResponseWriter, r *http.Request) {
	if !isPending(r) || r.Header.Get("Expect") != "" { // the client waits before it sends the body
		return
	}
	in := newArriving(w, r, drainTime)
	if n, err := io.CopyN(io.Discard, in, maxDrain); err == io.EOF && n < maxDrain {
		in.end()
	}
}

// AbandonBody prepares a response to a request whose body may be incomplete: the
// response is sent at once, and the connection is closed after it. The caller must
// call linger after writing the response. It gives the client the time to read the
// response: if the connection were closed with data that was not read, the client
// might get a connection reset instead.
func AbandonBody(w http.ResponseWriter, r *http.Request) (linger func()) {
	if !isPending(r) {
		return func() {}
	}
	w.Header().Set("Connection", "close")
	DisableCompression(w, r) // so that Flush sends everything
	rc := http.NewResponseController(w)
	// Without full duplex, net/http reads the body before it responds. Requests within
	// the process do not support it.
	if rc.EnableFullDuplex() != nil || r.Header.Get("Expect") != "" {
		return func() {}
	}
	return func() {
		// net/http then reads some of the body until the deadline. Best effort: if one of
		// these fails, the client has disconnected.
		_ = rc.Flush()
		_ = rc.SetReadDeadline(time.Now().Add(lingerTime))
	}
}

// isPending reports whether the body of a request has not been read.
func isPending(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// An arriving reads the body of a request within its time limits.
type arriving struct {
	r     *http.Request
	rc    *http.ResponseController
	start time.Time
	limit time.Duration // for the whole body
	n     int64         // bytes read
}

func newArriving(w http.ResponseWriter, r *http.Request, limit time.Duration) *arriving {
	return &arriving{r: r, rc: http.NewResponseController(w), start: time.Now(), limit: limit}
}

// Read implements io.Reader.
func (a *arriving) Read(b []byte) (int, error) {
	timeout := min(bodyGrace+time.Duration(a.n)*time.Second/bodyRate, a.limit)
	// Best effort: a request within the process has no deadlines.
	_ = a.rc.SetReadDeadline(a.start.Add(timeout))
	n, err := a.r.Body.Read(b)
	a.n += int64(n)
	return n, err
}

// enlarge returns a copy of body with that capacity. The time that it waits for memory
// does not count for the client.
func (a *arriving) enlarge(body []byte, capacity int64, lease *budget.Lease) ([]byte, error) {
	began := time.Now()
	if err := lease.Grow(a.r.Context(), capacity-int64(cap(body))); err != nil {
		return nil, err
	}
	a.start = a.start.Add(time.Since(began))
	return append(make([]byte, 0, capacity), body...), nil
}

// end notes that the body has been read completely.
func (a *arriving) end() {
	a.r.Body = http.NoBody
	// The handler may take longer than the body. Best effort, as in Read.
	_ = a.rc.SetReadDeadline(time.Time{})
}
