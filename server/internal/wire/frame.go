// Package wire holds the HTTP handling that the API and the web interface share:
// common headers, panics, compression, ETags, the access log, and the HTTP status
// of errors, which only problem.go decides.
package wire

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
)

// A Frame sets the headers of every response of a handler, even for unknown paths,
// and recovers from panics.
type Frame struct {
	// Header is set before the handler runs, which may change it.
	Header map[string]string
	// Fail writes the response for a panic of the handler. The error's text contains
	// the stack. If the handler has begun a response, that of Fail is dropped.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// Handler returns next with the frame applied.
func (f Frame) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		for name, value := range f.Header {
			header.Set(name, value)
		}

		response := &begun{ResponseWriter: w}
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				if response.has {
					w = dropped{}
				}
				f.Fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		next.ServeHTTP(response, r)
	})
}

// A begun is a ResponseWriter that knows whether its response has begun.
type begun struct {
	http.ResponseWriter
	has bool
}

func (b *begun) WriteHeader(status int) {
	b.has = b.has || status >= http.StatusOK
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(p []byte) (int, error) {
	b.has = true
	return b.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker, if the ResponseWriter does.
func (b *begun) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hijacker, ok := b.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, http.ErrNotSupported
	}
	b.has = true
	return hijacker.Hijack()
}

// Unwrap is for http.ResponseController.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// A dropped is a ResponseWriter that drops the response.
type dropped struct{}

func (dropped) Header() http.Header         { return http.Header{} }
func (dropped) Write(p []byte) (int, error) { return len(p), nil }
func (dropped) WriteHeader(int)             {}
