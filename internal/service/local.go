package service

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"sync/atomic"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/buildinfo"
	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

// A Local serves the API on a database file within the process. Its client has the
// rights of the administrator of the host.
type Local struct {
	*client.Client
	db    *store.Store
	wrote atomic.Bool // set by a request that may have changed something
}

// OpenLocal opens the database file of the settings, and creates it if it does not
// exist. The caller must close the Local.
func OpenLocal(ctx context.Context, s config.Settings) (*Local, error) {
	if err := CheckDatabase(string(s.Database)); err != nil {
		return nil, err
	}
	db, err := openStore(ctx, s, store.Options{})
	if err != nil {
		return nil, err
	}
	local := &Local{db: db}
	api := server.New(server.Config{
		Store:       db,
		Limits:      server.Limits{MaxBody: int64(s.MaxBody)},
		CheckTarget: s.Webhooks.Guard().Check,
		CheckIssuer: s.OIDC.Guard().Check,
		Version:     buildinfo.Version(),
		HostUser:    HostActor().User,
		Logs:        server.Logs{Receipts: newReceipts(s, db, slog.New(slog.DiscardHandler))},
		Authority:   newAuthority(s, db),
	})
	if local.Client, err = newHostClient(api, &local.wrote); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return local, nil
}

// HostActor returns the administrator of the host who runs a command.
func HostActor() ledger.Actor {
	a := ledger.Actor{Name: "host", Via: ledger.ViaHost}
	if u, err := user.Current(); err == nil {
		a.User = u.Username
	}
	if by := os.Getenv("SUDO_USER"); by != "" && a.User == "root" {
		a.User = by
	}
	return a
}

// newHostClient returns a client that calls the API in process, as the administrator
// of the host. It sets wrote before a request that may change something.
func newHostClient(api *server.Server, wrote *atomic.Bool) (*client.Client, error) {
	return client.New("http://localhost", client.Options{
		UserAgent:  buildinfo.UserAgent(),
		HTTPClient: &http.Client{Transport: &writeDetector{client.InProcess(api.Host()), wrote}},
	})
}

// A writeDetector is a transport that sets wrote if a request is not GET or HEAD.
type writeDetector struct {
	next  http.RoundTripper
	wrote *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (d *writeDetector) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		d.wrote.Store(true)
	}
	return d.next.RoundTrip(r)
}

// Settle re-evaluates the commits whose state may have changed, for instance because
// evidence has expired. A server does this continuously.
func (l *Local) Settle(ctx context.Context) error { return l.db.Settle(ctx) }

// Watch detects events that other processes write to the file, until ctx is done.
func (l *Local) Watch(ctx context.Context) { l.db.Watch(ctx) }

// Close closes the database. If requests may have changed something, it first calls
// Settle, since there may be no server to do it.
func (l *Local) Close(ctx context.Context) error {
	var err error
	if l.wrote.Load() {
		err = l.Settle(ctx)
	}
	return errors.Join(err, l.db.Close())
}

// IsCurrent reports whether OpenLocal would neither create nor migrate the database of the
// settings.
func IsCurrent(ctx context.Context, s config.Settings) bool {
	return store.IsCurrent(ctx, string(s.Database))
}
