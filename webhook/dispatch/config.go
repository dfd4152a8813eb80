package dispatch

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/url"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// An Outbox is what a Dispatcher needs of the store.
type Outbox interface {
	// Queued is signalled when TakeQueued has something to give.
	Queued() <-chan struct{}
	// TakeQueued returns the webhooks that got deliveries since the last call,
	// and those that are not any more what Claim has told of them.
	TakeQueued() (queued, changed []string)
	// DueWebhooks returns the webhooks that have deliveries due now.
	DueWebhooks(ctx context.Context) ([]string, error)
	// Claim leases due deliveries of a webhook; none if it is inactive or gone.
	Claim(ctx context.Context, webhook string, limit int, lease time.Duration) (ledger.Endpoint, []ledger.DueDelivery,
		error)
	// RecordOutcomes writes what came of attempts. A webhook becomes inactive when
	// all attempts have failed for disableAfter, and at least five.
	RecordOutcomes(ctx context.Context, outcomes []ledger.Outcome, disableAfter time.Duration) error
	// Release gives back deliveries that were claimed and not tried.
	Release(ctx context.Context, webhook string, deliveries []string) error
	Now() ledger.Time
}

// A Config says how a Dispatcher delivers. Only Outbox has no default.
type Config struct {
	Outbox    Outbox
	Logger    *slog.Logger
	Guard     *Guard // public addresses only
	UserAgent string // such as ledgerd/1.2.3
	// Schedule is how long to wait before each retry; DefaultSchedule where nil.
	Schedule       []time.Duration
	Timeout        time.Duration // of a request in all, 15 s
	ConnectTimeout time.Duration // of connecting, TLS and all, 5 s
	InFlight       int           // requests to one webhook at once, 8
	// TotalInFlight is how many requests there may be at once in all, 512, but
	// never more than a quarter of the files that the process may have open.
	TotalInFlight int
	DisableAfter  time.Duration // of nothing but failure, 5 days
	// Grace is how long requests in flight may go on when Run's context ends; 10 s.
	Grace   time.Duration
	Proxy   *url.URL       // that all requests go through; none
	RootCAs *x509.CertPool // the system's
}

// DefaultTotalInFlight bounds requests in flight unless the Config says
// otherwise.
const DefaultTotalInFlight = 512

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Guard == nil {
		c.Guard = NewGuard(nil)
	}
	c.UserAgent = cmp.Or(c.UserAgent, "ledgerd")
	if c.Schedule == nil {
		c.Schedule = DefaultSchedule()
	}
	c.Timeout = cmp.Or(c.Timeout, 15*time.Second)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	c.InFlight = cmp.Or(c.InFlight, 8)
	c.TotalInFlight = min(cmp.Or(c.TotalInFlight, DefaultTotalInFlight), affordable())
	c.DisableAfter = cmp.Or(c.DisableAfter, 5*24*time.Hour)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	return c
}
