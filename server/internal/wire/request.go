package wire

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"
)

// HeaderRequestID is the header of a request's id, in the request and in the
// response.
const HeaderRequestID = "X-Request-Id"

// WithRequestID returns next with a request id in every response: the request's
// own, if it is safe to write into headers and logs, or a new ULID.
func WithRequestID(next http.Handler) http.Handler {
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

// Logged returns next with an access log at debug level. It logs the path without
// the query, which may contain a secret.
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
	start := time.Now()
	recorder := &responseRecorder{ResponseWriter: w, status: http.StatusOK}
	next.ServeHTTP(recorder, r)
	log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path,
		"status", recorder.status, "bytes", recorder.bytes, "duration", time.Since(start),
		"remote", r.RemoteAddr, "request", w.Header().Get(HeaderRequestID))
}

// A responseRecorder records the status and size of a response for the access log.
type responseRecorder struct {
	http.ResponseWriter
	status int
	bytes  int
}

func (o *responseRecorder) WriteHeader(status int) {
	o.status = status
	o.ResponseWriter.WriteHeader(status)
}

func (o *responseRecorder) Write(b []byte) (int, error) {
	n, err := o.ResponseWriter.Write(b)
	o.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (o *responseRecorder) Unwrap() http.ResponseWriter { return o.ResponseWriter }
