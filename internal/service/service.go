// Package service runs the server, the web interface, the store below them and the
// dispatcher of webhooks in one process.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/server/web"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// An Instance is a running server with the store below it and the goroutines
// beside it.
type Instance struct {
	URL string

	db      *store.Store
	api     *server.Server
	site    *web.Site
	http    *http.Server
	cancel  context.CancelFunc // of the goroutines
	running sync.WaitGroup
	failed  chan error // why the serving ended by itself
}

// Start listens, opens the database and serves. The context only matters for
// starting: [Instance.Stop] ends the service.
func Start(ctx context.Context, s config.Settings, log *slog.Logger) (*Instance, error) {
	if err := checkDatabase(s.Database); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, s.Database, store.Options{
		Logger:         log,
		KeepDeliveries: time.Duration(s.Webhooks.Keep),
		RadarMemory:    int64(s.RadarMemory),
		NoCopy:         s.NoCopy,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	guard := s.Webhooks.Guard()
	api := server.New(server.Config{
		Store:           db,
		Logger:          log,
		MaxBody:         int64(s.MaxBody),
		StreamsPerOrg:   s.Streams.PerOrg,
		StreamsPerToken: s.Streams.PerToken,
		CheckTarget:     guard.Check,
		Version:         buildinfo.Version(),
	})
	site, err := web.New(web.Config{API: api, Logger: log})
	if err != nil {
		return nil, errors.Join(err, db.Close(), listener.Close())
	}
	dispatcher := newDispatcher(s, db, guard, log)
	owned, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v := &Instance{
		URL:    "http://" + listener.Addr().String(),
		db:     db,
		api:    api,
		site:   site,
		cancel: cancel,
		failed: make(chan error, 1),
		http: &http.Server{
			Handler:           withPages(api.Handler(), site.Handler()),
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       time.Minute,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
			// OPTIONS * is answered like every other request that has no endpoint.
			DisableGeneralOptionsHandler: true,
		},
	}
	v.http.RegisterOnShutdown(api.EndStreams)
	v.running.Go(func() { db.Evaluate(owned) })
	v.running.Go(func() { db.Tidy(owned) })
	v.running.Go(func() { db.Watch(owned) })
	v.running.Go(func() { dispatcher.Run(owned) })
	v.running.Go(func() {
		if err := v.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			v.failed <- fmt.Errorf("serving: %w", err)
		}
	})
	return v, nil
}

// withPages has the API answer under its own paths and the pages under all others.
func withPages(api, site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/v1", strings.HasPrefix(path, "/v1/"), path == "/healthz", path == "/readyz", path == "*":
			api.ServeHTTP(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}

// newDispatcher returns what sends the deliveries in the database.
func newDispatcher(s config.Settings, db *store.Store, guard *dispatch.Guard, log *slog.Logger) *dispatch.Dispatcher {
	return dispatch.New(dispatch.Config{
		Outbox:         db,
		Logger:         log,
		Guard:          guard,
		UserAgent:      buildinfo.UserAgent(),
		Schedule:       s.Webhooks.Schedule.Durations(),
		Timeout:        time.Duration(s.Webhooks.Timeout),
		ConnectTimeout: time.Duration(s.Webhooks.ConnectTimeout),
		InFlight:       s.Webhooks.InFlight,
		TotalInFlight:  s.Webhooks.TotalInFlight,
		DisableAfter:   time.Duration(s.Webhooks.DisableAfter),
		Grace:          s.ShutdownTimeout,
		Proxy:          s.Webhooks.Proxy.URL(),
	})
}

// Wait returns when the context ends, or with the error that ended the serving.
func (v *Instance) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-v.failed:
		return err
	}
}

// SetupPath returns the path of the page that creates the first org. It works once.
func (v *Instance) SetupPath() string { return v.site.SetupPath() }

// Host returns a client that may do everything, without a network between.
func (v *Instance) Host() (*client.Client, error) {
	return newHostClient(v.api, new(atomic.Bool))
}

// Stop lets requests that are under way finish, for as long as the timeout, then
// what is being sent to webhooks for as long again, and closes the database.
func (v *Instance) Stop(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := v.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not finish within %v: %w", timeout, err), v.http.Close())
	}
	v.cancel()
	v.running.Wait()
	return errors.Join(err, v.db.Close())
}
