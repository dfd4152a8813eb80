// Package service runs the API server, the web interface, the store and the webhook
// dispatcher in one process.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/internal/oidc"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

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
