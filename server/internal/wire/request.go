package wire

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"
)

// HeaderRequestID is the header of a request's id, in the request and in its
// answer.
const HeaderRequestID = "X-Request-Id"

// Identified returns next with a request id in every answer: the one that the
// request came with, if it is fit to be written into headers and logs, else a
// new one.
func Identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(HeaderRequestID)
		if !isRequestID(id) {
			id = ulid.Make().String()
		}
		w.Header().Set(HeaderRequestID, id)
		next.ServeHTTP(w, r)
	})
}

func isRequestID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':',
			c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}

// Logged returns next with an access log at debug level. The log has the path
// alone: a query or a header may hold a secret.
func Logged(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if log.Enabled(r.Context(), slog.LevelDebug) {
			logRequest(next, log, w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

func logRequest(next http.Handler, log *slog.Logger, w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	seen := &observed{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(seen, r)
	log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", seen.status, "bytes",
		seen.bytes,
		"duration", time.Since(begin), "remote", r.RemoteAddr, "request", w.Header().Get(HeaderRequestID))
}

// An observed writer counts what the access log reports.
type observed struct {
	http.ResponseWriter
	status int
	bytes  int
}

func (o *observed) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

func (o *observed) Write(b []byte) (int, error) {
	n, err := o.ResponseWriter.Write(b)
	o.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }
