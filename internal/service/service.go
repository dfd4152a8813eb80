// Package service runs the API server, the web interface, the store and the webhook
// dispatcher in one process.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// An Instance is a running server with its store and background goroutines.
type Instance struct {
	// URL is where clients reach it, with the base path. If it listens on a unix socket, that is
	// the URL of what is in front of it.
	URL string
	// Socket is the path of the unix socket on which it listens, or empty.
	Socket string
	// Metrics is the URL of the metrics if they have a listener of their own.
	Metrics string

	db      *store.Store
	api     *server.Server
	site    *web.Site
	logs    logs
	metrics *metrics
	log     *slog.Logger
	clients *connections
	http    *http.Server
	cancel  context.CancelFunc // of the background goroutines
	running sync.WaitGroup
	failed  chan error // receives the error if the HTTP server fails

	draining       atomic.Bool   // every response closes its connection
	arrivalTimeout time.Duration // how long Stop waits for requests to arrive
}

// maxStreams is the maximum number of requests at a time on one connection with HTTP/2.
const maxStreams = 100

// maxHead is the maximum size of the head of a request in bytes, to which net/http adds
// 4 KiB.
const maxHead = 12 << 10

// Start opens the database and serves HTTP. The context only applies to starting; use
// [Instance.Stop] to stop the service.
func Start(ctx context.Context, s config.Settings, log *Log) (*Instance, error) {
	return StartAt(ctx, s, log, nil)
}

// StopTimeout is how long a stop waits for requests, and then again for webhook attempts. What kills
// the program must wait longer: see docs/reliability.md.
const StopTimeout = 15 * time.Second

// failedSignIns is how many requests per minute may come from an address whose token is not accepted.
// One address may be that of many people behind a proxy.
const failedSignIns = 60

// StartAt is Start with another clock than that of the system, or of the database on a server: all
// that the server records has its time. The times that now returns need a monotonic reading, and
// must not jump against it (see [store.Options]).
func StartAt(ctx context.Context, s config.Settings, l *Log, now func() time.Time) (*Instance, error) {
	log := l.Logger
	for _, note := range s.Gone {
		log.Warn(note)
	}
	if err := errors.Join(CheckDatabase(string(s.Database)), s.CheckForServer()); err != nil {
		return nil, err
	}

	encryption, err := newTLS(s.TLS, s.ACMEFolder(), log)
	if err != nil {
		return nil, err
	}
	m := newMetrics()
	listener, err := listen(s.Listen, MaxConnections())
	if err != nil {
		return nil, err
	}
	db, err := openStore(ctx, s, store.Options{
		Now:            now,
		Logger:         log,
		KeepDeliveries: time.Duration(s.Webhooks.Keep),
		RadarMemory:    int64(s.RadarMemory),
		Committed:      m.writer.Committed,
		Serve:          true,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}

	guard := s.Webhooks.Guard()
	logs, err := newLogs(s, db, log)
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}
	backups, err := newBackups(s, db, log)
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}
	party, err := s.SignIn.Party(s.BaseURL)
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}
	api := server.New(logs.serve(server.Config{
		Store:         db,
		Base:          s.BaseURL.Path(),
		Streams:       listener.places.limit * 3 / 4, // the rest is for other requests
		Logger:        log,
		MaxBody:       int64(s.MaxBody),
		Requests:      s.Limits.Requests,
		FailedSignIns: failedSignIns,
		CheckTarget:   guard.Check,
		CheckIssuer:   s.OIDC.Guard().Check,
		Issuers:       newIssuers(s, log),
		BaseURL:       string(s.BaseURL),
		Party:         party,
		Version:       buildinfo.Version(),
		Observer:      m.server,
	}))
	site, err := newSite(s, api, db, log)
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}

	private, err := m.private(s.Metrics, l)
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}

	dispatcher := newDispatcher(s, db, guard, log)
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v := &Instance{
		URL:     urlOf(s, listener.Addr()),
		Socket:  socketOf(listener.Addr()),
		db:      db,
		api:     api,
		site:    site,
		logs:    logs,
		metrics: m,
		log:     log,
		clients: listener,
		cancel:  cancel,
		failed:  make(chan error, 1),

		arrivalTimeout: 2 * time.Second,

		http: &http.Server{
			ConnContext:       inContext,
			ConnState:         stateChanged,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       time.Minute,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    maxHead,
			TLSConfig:         encryption,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			// OPTIONS * gets the same response as other requests without an endpoint.
			DisableGeneralOptionsHandler: true,
		},
	}

	handler := v.closing(withPages(s.BaseURL.Path(), api.Handler(), site.Handler(), m.public(s.Metrics)))
	v.http.Handler = listener.track(withClient(handler, s.TrustedProxies))
	v.http.RegisterOnShutdown(api.EndStreams)
	v.running.Go(func() { db.Evaluate(background) })
	v.running.Go(func() { db.Tidy(background) })
	v.running.Go(func() { db.Watch(background) })
	v.running.Go(func() { db.BuildLogs(background) })
	v.running.Go(func() { logs.run(background) })
	v.running.Go(func() { dispatcher.Run(background) })
	m.watch(api, db, logs.pool, dispatcher, backups)
	if private != nil {
		v.Metrics = "http://" + private.listener.Addr().String() + "/metrics"
		v.running.Go(func() {
			if err := private.serve(background); err != nil {
				log.Error("metrics are not served", "error", err)
			}
		})
	}
	if backups != nil {
		v.running.Go(func() { backups.Run(background) })
	}
	v.running.Go(func() {
		err := v.serve()
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) { // by Stop
			v.failed <- fmt.Errorf("serving: %w", err)
		}
	})
	if interval := watchdogInterval(log); interval > 0 {
		v.running.Go(func() { feedWatchdog(background, db, interval, log) })
	}
	notify(log, daemon.SdNotifyReady)
	return v, nil
}

// serve serves HTTP, encrypted if so set, until the listener is closed.
func (v *Instance) serve() error {
	if v.http.TLSConfig != nil {
		return v.http.ServeTLS(v.clients, "", "")
	}
	return v.http.Serve(v.clients)
}

// urlOf returns the URL of a server that listens on an address.
func urlOf(s config.Settings, address net.Addr) string {
	if socketOf(address) != "" {
		return cmp.Or(string(s.BaseURL), "http://localhost")
	}
	if s.TLS.Enabled() {
		return "https://" + address.String() + s.BaseURL.Path()
	}
	return "http://" + address.String() + s.BaseURL.Path()
}

// socketOf returns the path of a unix socket, or an empty string for other addresses.
func socketOf(address net.Addr) string {
	if socket, ok := address.(*net.UnixAddr); ok {
		return socket.Name
	}
	return ""
}

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

// newSite returns the web interface.
func newSite(s config.Settings, api *server.Server, db *store.Store, log *slog.Logger) (*web.Site, error) {
	configs, err := s.SignIn.LoadProviders(s.BaseURL)
	if err != nil {
		return nil, err
	}
	now := func() time.Time { return db.Now().Std() }
	providers := idp.New(configs, idp.Options{CallbackURL: string(s.BaseURL) + web.CallbackPath,
		UserAgent: buildinfo.UserAgent(), Logger: log, Now: now})
	return web.New(web.Config{API: api, Base: s.BaseURL.Path(), Providers: providers, RPID: s.SignIn.RPID,
		Logger: log, Now: now})
}

// newIssuers returns the verifier of the tokens of issuers.
func newIssuers(s config.Settings, log *slog.Logger) *oidc.Issuers {
	return oidc.New(oidc.Config{Control: s.OIDC.Guard().Control, UserAgent: buildinfo.UserAgent(), Logger: log})
}

// newDispatcher returns the dispatcher that sends the deliveries in the database.
func newDispatcher(s config.Settings, db *store.Store, guard *dispatch.Guard, log *slog.Logger) *dispatch.Dispatcher {
	return dispatch.New(dispatch.Config{
		Outbox:    db,
		Logger:    log,
		Guard:     guard,
		UserAgent: buildinfo.UserAgent(),
		Schedule:  s.Webhooks.Schedule.Durations(),
		Timeout:   time.Duration(s.Webhooks.Timeout),
		Grace:     StopTimeout,
		Proxy:     s.Webhooks.Proxy.URL(),
	})
}

// SetupURL returns the URL of the page that creates the first org, for a browser on this
// machine. It works once.
func (v *Instance) SetupURL() string { return browserURL(v.URL) + v.site.SetupPath() }

// SignInURL returns the URL of a page that signs a person in with a token, for a browser on
// this machine. The token's secret must be set. The URL works once, for a time; used is
// closed when it was used.
func (v *Instance) SignInURL(token ledger.Token, lifetime time.Duration) (link string, used <-chan struct{}) {
	path, used := v.site.SignInPath(token, lifetime)
	return browserURL(v.URL) + path, used
}

// browserURL returns the URL at which a browser on this machine reaches the server. If
// the server listens on all addresses, such as [::]:8080, the host is localhost.
func browserURL(listening string) string {
	u, err := url.Parse(listening)
	if err != nil {
		return listening
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("localhost", u.Port())
	}
	return u.String()
}

// Settle re-evaluates the commits whose state may have changed, for instance because
// evidence has expired. The service does this by itself, at least once a second.
func (v *Instance) Settle(ctx context.Context) error { return v.db.Settle(ctx) }

// Host returns an in-process client with the rights of the administrator of the host.
func (v *Instance) Host() (*client.Client, error) {
	return newHostClient(v.api, new(atomic.Bool))
}
