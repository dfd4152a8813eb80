// Package wire is the HTTP that the API and the web interface have in common:
// the headers of every answer, panics, compression, ETags, the access log, and
// the status of an error.
package wire

import (
	"fmt"
	"net/http"
	"runtime/debug"
)

// A Frame is what every answer of a handler has in common, that to an unknown
// path too.
type Frame struct {
	// Header is set before the handler runs, which may change it.
	Header map[string]string
	// Fail answers with an error. It gets a panic of the handler as an error whose
	// text holds the stack.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// Handler returns next within the frame.
func (f Frame) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		for name, value := range f.Header {
			header.Set(name, value)
		}
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				f.Fail(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
