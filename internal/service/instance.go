package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/backup"
	"github.com/ledgerd/ledgerd/internal/config"
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

	settings config.Settings
	now      func() time.Time // clock of the database; nil for the usual one
	log      *Log
	guard    *dispatch.Guard // of webhooks
	metrics  *metrics

	encryption *tls.Config // nil if connections are plain
	clients    *connections
	db         *store.Store
	logs       logs
	backups    *backup.Schedule // may be nil
	api        *server.Server
	site       *web.Site
	private    *privateServer     // of metrics; may be nil
	cancel     context.CancelFunc // of the background goroutines
	running    sync.WaitGroup
	http       *http.Server
	failed     chan error // receives the error if the HTTP server fails

	draining       atomic.Bool   // every response closes its connection
	arrivalTimeout time.Duration // how long Stop waits for requests to arrive
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
