package service

import (
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// maxStreams is the maximum number of requests at a time on one connection with HTTP/2.
const maxStreams = 100

// maxHead is the maximum size of the head of a request in bytes, to which net/http adds
// 4 KiB.
const maxHead = 12 << 10

// withPages routes the paths of the API, below the base path, to api, that of the metrics to
// metrics, unless it is nil, and all others to site. Metrics are for the inside: they have the root
// path only, so that no proxy that leaves the base path in requests publishes them.
func withPages(base string, api, site, metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && metrics != nil {
			metrics.ServeHTTP(w, r)
			return
		}
		r = below(base, r)
		switch path := strings.TrimPrefix(r.URL.Path, base); {
		case path == "/v1", strings.HasPrefix(path, "/v1/"), path == "/healthz", path == "/readyz", path == "*":
			api.ServeHTTP(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}

// closing returns next with a response header that closes the connection, while the
// service drains.
func (v *Instance) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// newHTTP returns an HTTP server for a listener of the type [connections].
func newHTTP(log *Log) *http.Server {
	return &http.Server{
		ConnContext:       inContext,
		ConnState:         stateChanged,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHead,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// OPTIONS * gets the same response as other requests without an endpoint.
		DisableGeneralOptionsHandler: true,
	}
}

// serve serves HTTP, encrypted if so set, until the listener is closed.
func (v *Instance) serve() error {
	if v.http.TLSConfig != nil {
		return v.http.ServeTLS(v.clients, "", "")
	}
	return v.http.Serve(v.clients)
}
