// Package service runs the API server, the web interface, the store and the webhook
// dispatcher in one process. Commands use its API on a database file without a server.
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

// StartAt is Start with another clock than that of the system, or of the database on a server: all
// that the server records has its time. The times that now returns need a monotonic reading, and
// must not jump against it (see [store.Options]).
func StartAt(ctx context.Context, s config.Settings, log *Log, now func() time.Time) (*Instance, error) {
	for _, note := range s.Gone {
		log.Warn(note)
	}
	if err := errors.Join(CheckDatabase(string(s.Database)), s.CheckForServer()); err != nil {
		return nil, err
	}

	v := &Instance{
		settings: s,
		now:      now,
		log:      log,
		guard:    s.Webhooks.Guard(),
		metrics:  newMetrics(),
		failed:   make(chan error, 1),

		arrivalTimeout: 2 * time.Second,
	}
	if err := startParts(ctx, v.parts()); err != nil {
		return nil, err
	}
	return v, nil
}

// StopTimeout is how long a stop waits for requests, and then again for webhook attempts. What kills
// the program must wait longer: see docs/reliability.md.
const StopTimeout = 15 * time.Second

// Stop stops the service. For the delay, the server still serves requests but is not
// ready, and each response closes its connection, so that clients move to another
// server. Then Stop accepts no more connections and waits: at most two seconds for
// requests to arrive, at most timeout for their responses, and at most timeout again
// for running webhook attempts. Finally it closes the database. Responses that clients
// do not read are cut off, which is not an error.
func (v *Instance) Stop(delay, timeout time.Duration) error {
	return stopParts(v.parts(), shutdown{delay, timeout})
}

// parts returns the parts of the service in the order in which they start. Nothing runs before
// all parts that can fail have started.
func (v *Instance) parts() []part {
	return []part{
		{v.listen, v.closeListener},
		{v.openDatabase, v.closeDatabase},
		{v.openLogs, nil},
		{v.openBackups, nil},
		{v.openAPI, nil},
		{v.openSite, nil},
		{v.listenForMetrics, v.closeMetrics},
		{v.startBackground, v.stopBackground},
		{v.startHTTP, v.stopHTTP},
		{v.announce, v.withdraw},
	}
}

// listen reads the certificate and listens for clients.
func (v *Instance) listen(context.Context) (err error) {
	s := v.settings
	if v.encryption, err = newTLS(s.TLS, s.ACMEFolder(), v.log.Logger); err != nil {
		return err
	}
	if v.clients, err = listen(s.Listen, MaxConnections()); err != nil {
		return err
	}
	v.URL, v.Socket = urlOf(s, v.clients.Addr()), socketOf(v.clients.Addr())
	return nil
}

func (v *Instance) closeListener(shutdown) error { return v.clients.Close() }

func (v *Instance) openDatabase(ctx context.Context) (err error) {
	v.db, err = openStore(ctx, v.settings, store.Options{
		Now:            v.now,
		Logger:         v.log.Logger,
		KeepDeliveries: time.Duration(v.settings.Webhooks.Keep),
		RadarMemory:    int64(v.settings.RadarMemory),
		Committed:      v.metrics.writer.Committed,
		Serve:          true,
	})
	return err
}

func (v *Instance) closeDatabase(shutdown) error { return v.db.Close() }

func (v *Instance) openLogs(context.Context) (err error) {
	v.logs, err = newLogs(v.settings, v.db, v.log.Logger)
	return err
}

func (v *Instance) openBackups(context.Context) (err error) {
	v.backups, err = newBackups(v.settings, v.db, v.log.Logger)
	return err
}

// failedSignIns is how many requests per minute may come from an address whose token is not accepted.
// One address may be that of many people behind a proxy.
const failedSignIns = 60

func (v *Instance) openAPI(context.Context) error {
	s := v.settings
	party, err := s.SignIn.Party(s.BaseURL)
	if err != nil {
		return err
	}
	v.api = server.New(server.Config{
		Store:    v.db,
		Logger:   v.log.Logger,
		Observer: v.metrics.server,
		Version:  buildinfo.Version(),
		Base:     s.BaseURL.Path(),
		BaseURL:  string(s.BaseURL),
		Limits: server.Limits{
			MaxBody:       int64(s.MaxBody),
			Requests:      s.Limits.Requests,
			FailedSignIns: failedSignIns,
			Streams:       v.clients.places.limit * 3 / 4, // the rest is for other requests
		},
		Logs:        v.logs.shown(),
		Authority:   v.logs.authority,
		Party:       party,
		Issuers:     newIssuers(s, v.log.Logger),
		CheckIssuer: s.OIDC.Guard().Check,
		CheckTarget: v.guard.Check,
	})
	return nil
}

func (v *Instance) openSite(context.Context) (err error) {
	v.site, err = newSite(v.settings, v.api, v.db, v.log.Logger)
	return err
}

// listenForMetrics listens on metrics.listen, if that is an address.
func (v *Instance) listenForMetrics(context.Context) (err error) {
	v.private, err = v.metrics.private(v.settings.Metrics, v.log)
	if v.private != nil {
		v.Metrics = "http://" + v.private.listener.Addr().String() + "/metrics"
	}
	return err
}

// closeMetrics closes the listener of the metrics, unless it has been serving them.
func (v *Instance) closeMetrics(shutdown) error {
	if v.private == nil {
		return nil
	}
	if err := v.private.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// startBackground starts what runs besides the HTTP server, which it outlives.
func (v *Instance) startBackground(ctx context.Context) error {
	ctx, v.cancel = context.WithCancel(context.WithoutCancel(ctx))
	dispatcher := newDispatcher(v.settings, v.db, v.guard, v.log.Logger)
	v.metrics.watch(v.api, v.db, v.logs.pool, dispatcher, v.backups)

	run := func(task func(context.Context)) { v.running.Go(func() { task(ctx) }) }
	run(v.db.Work)
	run(v.db.Tidy)
	run(v.db.Watch)
	run(v.db.BuildLogs)
	run(v.logs.run)
	run(dispatcher.Run)
	if v.private != nil {
		run(v.serveMetrics)
	}
	if v.backups != nil {
		run(v.backups.Run)
	}
	if interval := watchdogInterval(v.log.Logger); interval > 0 {
		run(func(ctx context.Context) { feedWatchdog(ctx, v.db, interval, v.log.Logger) })
	}
	return nil
}

func (v *Instance) stopBackground(shutdown) error {
	v.cancel()
	v.running.Wait()
	return nil
}

// serveMetrics serves metrics.listen until ctx is done.
func (v *Instance) serveMetrics(ctx context.Context) {
	if err := v.private.serve(ctx); err != nil {
		v.log.Error("metrics are not served", "error", err)
	}
}

// startHTTP serves clients.
func (v *Instance) startHTTP(context.Context) error {
	s := v.settings
	handler := v.closing(withPages(s.BaseURL.Path(), v.api.Handler(), v.site.Handler(), v.metrics.public(s.Metrics)))
	v.http = newHTTP(v.log)
	v.http.TLSConfig = v.encryption
	v.http.Handler = v.clients.track(withClient(handler, s.TrustedProxies))
	v.http.RegisterOnShutdown(v.api.EndStreams)

	v.running.Go(func() {
		err := v.serve()
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) { // by stopHTTP
			v.failed <- fmt.Errorf("serving: %w", err)
		}
	})
	return nil
}

// stopHTTP accepts no more connections, and waits for the requests of the others.
func (v *Instance) stopHTTP(s shutdown) error {
	v.clients.cutRequests(time.Now().Add(min(v.arrivalTimeout, s.timeout)))
	_ = v.clients.Close() // closeListener returns the error
	v.clients.waitForFirst(min(firstTimeout, s.timeout))
	return v.shutDown(s.timeout)
}

// announce notifies systemd that the service is ready.
func (v *Instance) announce(context.Context) error {
	notify(v.log.Logger, daemon.SdNotifyReady)
	return nil
}

// withdraw makes the service not ready, and serves for the delay.
func (v *Instance) withdraw(s shutdown) error {
	notify(v.log.Logger, daemon.SdNotifyStopping)
	v.api.Drain()
	v.draining.Store(true)
	return v.serveFor(s.delay)
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
