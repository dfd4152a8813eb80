// Package server is the HTTP API of ledgerd. routes.go holds all of it on one
// page; openapi.yaml describes it, and the tests hold the two together.
package server

import (
	"cmp"
	"compress/gzip"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
)

// DefaultMaxBody is the most bytes that an attestation or the registration of
// a commit may have, unless Config says otherwise.
const DefaultMaxBody = 4 << 20

// How many live streams may be open, unless Config says otherwise.
const (
	DefaultStreamsPerOrg   = 5000
	DefaultStreamsPerToken = 2000
)

// Config is what a Server is made of.
type Config struct {
	Store Store
	// Now is the clock by which certificates and tokens expire; time.Now where nil.
	Now func() time.Time
	// Logger gets what went wrong inside, and at debug level every request.
	Logger *slog.Logger
	// MaxBody is the config key max_body; DefaultMaxBody where 0.
	MaxBody int64
	// Version is ledgerd's own, for the Server header.
	Version string
	// StreamsPerOrg and StreamsPerToken are the config keys streams.per_org and
	// streams.per_token; DefaultStreamsPerOrg and DefaultStreamsPerToken where 0.
	StreamsPerOrg, StreamsPerToken int
	// CheckTarget refuses, by a *ledger.Error about the field url, a URL that no
	// webhook may have, whether it is made or changed; every URL passes where nil.
	CheckTarget func(ctx context.Context, url string) error
}

// A Server answers the HTTP API.
type Server struct {
	store   Store
	now     func() time.Time
	log     *slog.Logger
	maxBody int64
	name    string // for the Server header

	checkTarget func(ctx context.Context, url string) error

	feeds  *feeds
	limits *limits
	pace   pace
	ending chan struct{} // closed by EndStreams
	end    sync.Once
}

// New returns a Server. EndStreams ends what it has running.
func New(c Config) *Server {
	s := &Server{store: c.Store, now: c.Now, log: c.Logger, maxBody: c.MaxBody, name: "ledgerd", pace: defaultPace, ending: make(chan struct{})}
	s.limits = &limits{perOrg: cmp.Or(c.StreamsPerOrg, DefaultStreamsPerOrg), perToken: cmp.Or(c.StreamsPerToken, DefaultStreamsPerToken), open: make(map[string]int)}
	if s.checkTarget = c.CheckTarget; s.checkTarget == nil {
		s.checkTarget = func(context.Context, string) error { return nil }
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.maxBody == 0 {
		s.maxBody = DefaultMaxBody
	}
	if c.Version != "" {
		s.name += "/" + c.Version
	}
	s.feeds = &feeds{store: s.store, log: s.log, byOrg: make(map[string]*feed)}
	return s
}

// EndStreams ends the live streams, those to come too. Their clients connect
// again, to the next server, and resume.
func (s *Server) EndStreams() { s.end.Do(func() { close(s.ending) }) }

// Handler returns the API as the network sees it: callers show a token.
func (s *Server) Handler() http.Handler { return compressed(s.handler(s.byToken)) }

// Host returns the API as the administrator of the host sees it: without a
// token, every org and every endpoint. It is for use inside the process, and
// must never be reachable from a network.
func (s *Server) Host() http.Handler { return s.handler(byHost) }

// Sessions returns the API as those see it who are signed in to the web
// interface: callers are known by WithSession, and can do what the token can
// that they signed in with. It is for use inside the process: what comes from a
// network tells it nothing of who calls.
func (s *Server) Sessions() http.Handler { return s.handler(s.bySession) }

func (s *Server) handler(identify identify) http.Handler {
	return s.logged(s.framed(s.router(identify)))
}

func (s *Server) time() ledger.Time { return ledger.TimeOf(s.now()) }

// gzipSuffix marks the ETag of an answer that goes out compressed.
const gzipSuffix = "-gzip"

// compressed gzips what is worth it, for those who accept it: at the
// fastest level, for a slower one would cost more than the rest of the answer.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.EnableZstd(false),
		gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.SuffixETag(gzipSuffix),
		gzhttp.ContentTypes([]string{typeJSON, typeProblem, typeYAML, typeDSSE, typeBundle, typeBundleOld}),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	zipped := wrap(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A stream is never compressed, and thousands of them wait at this depth of
		// the stack.
		if asksForStream(r) {
			h.ServeHTTP(w, r)
		} else {
			zipped.ServeHTTP(w, r)
		}
	})
}

const headerRequestID = "X-Request-Id"

// framed does what every answer needs, that to an unknown path too: the
// headers that all have in common, and an answer in case of a panic.
func (s *Server) framed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set(headerRequestID, requestID(r))
		header.Set("Server", s.name)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "private, no-cache")
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				s.log.ErrorContext(r.Context(), "panic in a handler", "panic", p, "stack", string(debug.Stack()), "request", header.Get(headerRequestID))
				s.fail(w, r, ledger.Errorf(ledger.CodeInternal, internalDetail))
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// requestID returns the id that the request came with, if it is fit to be
// written into headers and logs, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	if len(id) == 0 || len(id) > 128 {
		return ulid.Make().String()
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return ulid.Make().String()
		}
	}
	return id
}

// logged writes an access log at debug level. It holds the path alone: what
// stands in a query or a header may be a secret.
func (s *Server) logged(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.log.Enabled(r.Context(), slog.LevelDebug) {
			s.logRequest(h, w, r)
		} else {
			h.ServeHTTP(w, r)
		}
	})
}

func (s *Server) logRequest(h http.Handler, w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	seen := &observed{ResponseWriter: w, status: http.StatusOK}
	h.ServeHTTP(seen, r)
	s.log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", seen.status, "bytes", seen.bytes,
		"duration", time.Since(begin), "remote", r.RemoteAddr, "request", w.Header().Get(headerRequestID))
}

// An observed writer notes what the access log tells.
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
