package wire

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/server/internal/budget"
)

// retryAfter is the Retry-After header of a 429 and a 503, in seconds.
const retryAfter = "5"

const (
	writeGrace = 10 * time.Second
	writeRate  = 32 << 10 // bytes per second
)

// WriteBody writes a response with a complete body. It also writes the body in
// response to HEAD: net/http omits it, and the headers are the same as for GET. A
// client that reads less than 32 KiB per second, after 10 seconds, is disconnected.
//
// If the body of the request has not been read completely, WriteBody does not wait for
// it, and the connection is closed after the response.
func WriteBody(w http.ResponseWriter, r *http.Request, status int, mediaType string, body []byte) {
	linger := AbandonBody(w, r)
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	isTemporary := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	if isTemporary && header.Get("Retry-After") == "" {
		header.Set("Retry-After", retryAfter)
	}

	timeout := writeGrace + time.Duration(len(body))*time.Second/writeRate
	// Best effort: a request within the process has no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout))
	w.WriteHeader(status)
	w.Write(body) // fails only if the client has disconnected
	linger()
}

const (
	// smallResponse is the maximum size in bytes of a response that the kernel buffers,
	// so that it takes no memory of the process while the client reads it.
	smallResponse = 16 << 10
	// compressorSize is the approximate memory of a gzip compressor in bytes.
	compressorSize = 1 << 20
)

// Charge resizes a lease to the memory that a response takes while it is being
// written. It waits until the memory is available.
func Charge(ctx context.Context, lease *budget.Lease, h http.Header, size int) error {
	switch {
	case size <= smallResponse:
		size = 0
	case strings.Contains(h.Get("Accept-Encoding"), "gzip"):
		size += compressorSize
	}
	return lease.Resize(ctx, int64(size))
}

// IsRead reports whether a request only reads: it is a GET or a HEAD.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }
