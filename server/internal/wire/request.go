package wire

import (
	"cmp"
	"context"
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
// the query, which may contain a secret. The handler can set the caller with SetCaller.
func Logged(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, new(caller)))
		if log.Enabled(r.Context(), slog.LevelDebug) {
			logRequest(next, log, w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

func logRequest(next http.Handler, log *slog.Logger, w http.ResponseWriter, r *http.Request) {
	recorder := NewRecorder(w)
	next.ServeHTTP(recorder, r)
	log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path,
		"status", recorder.Status(), "bytes", recorder.bytes, "duration", time.Since(recorder.begun),
		"remote", r.RemoteAddr, "request", w.Header().Get(HeaderRequestID), CallerOf(r))
}

// A caller is who sent a request. Its fields are empty until the caller is authenticated.
type caller struct{ token, org string }

// callerKey is the context key of the *caller of a request.
type callerKey struct{}

// SetCaller sets the id of the API token that a request was authenticated with, and its org,
// for the log. It is a no-op if the request is not Logged.
func SetCaller(r *http.Request, token, org string) {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		*c = caller{token, org}
	}
}

// CallerOf returns the attributes token and org of a log line about a request, as SetCaller has
// set them. They are empty, and so not logged, if the request was not authenticated.
func CallerOf(r *http.Request) slog.Attr {
	c, ok := r.Context().Value(callerKey{}).(*caller)
	if !ok || c.token == "" {
		return slog.Attr{}
	}
	return slog.Group("", "token", c.token, "org", c.org) // without a name, the group is inlined
}

// A Recorder records the status, the size and the beginning of a response.
type Recorder struct {
	http.ResponseWriter
	begun  time.Time
	took   time.Duration // until the header was written
	status int           // 0 until then
	bytes  int
}

// NewRecorder returns a Recorder of the response to a request that has just arrived.
func NewRecorder(w http.ResponseWriter) *Recorder {
	return &Recorder{ResponseWriter: w, begun: time.Now()}
}

// WriteHeader implements http.ResponseWriter.
func (o *Recorder) WriteHeader(status int) {
	if o.status == 0 {
		o.status, o.took = status, time.Since(o.begun)
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (o *Recorder) Write(b []byte) (int, error) {
	if o.status == 0 {
		o.status, o.took = http.StatusOK, time.Since(o.begun)
	}
	n, err := o.ResponseWriter.Write(b)
	o.bytes += n
	return n, err
}

// Unwrap is for http.ResponseController.
func (o *Recorder) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Status returns the status of the response; 200 if it has no body and no header was written.
func (o *Recorder) Status() int { return cmp.Or(o.status, http.StatusOK) }

// Took returns the time until the response began.
func (o *Recorder) Took() time.Duration { return o.took }
