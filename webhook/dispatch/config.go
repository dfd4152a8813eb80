package dispatch

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/url"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// An Outbox holds the deliveries that are not finished. A store implements it.
type Outbox interface {
	// Queued returns a channel that is signalled when TakeQueued has results.
	Queued() <-chan struct{}
	// TakeQueued returns the webhooks for which deliveries were queued since the last
	// call, and those that were changed, so that what Claim returned is out of date.
	TakeQueued() (queued, changed []string)
	// DueWebhooks returns the webhooks that have deliveries due now.
	DueWebhooks(ctx context.Context) ([]string, error)
	// Claim leases up to limit due deliveries of a webhook. It returns none if the
	// webhook is inactive or deleted.
	Claim(ctx context.Context, webhook string, limit int, lease time.Duration) (outbound.Endpoint, []outbound.DueDelivery,
		error)
	// RecordOutcomes writes the outcomes of attempts. It disables a webhook if all
	// attempts have failed for disableAfter, and at least five in a row.
	RecordOutcomes(ctx context.Context, outcomes []outbound.Outcome, disableAfter time.Duration) error
	// Release ends the leases of deliveries that were claimed but not attempted.
	Release(ctx context.Context, webhook string, deliveries []outbound.DueDelivery) error
	// Now returns the time by which deliveries are due. It may go back.
	Now() ledger.Time
	// WallTime returns the time that receivers probably have, for signatures.
	WallTime() ledger.Time
}

// A Config configures a Dispatcher. Only Outbox is required.
type Config struct {
	Outbox    Outbox
	Logger    *slog.Logger
	Guard     *Guard // default: public addresses only
	UserAgent string // such as ledgerd/1.2.3
	// Schedule holds the delay before each retry. The default is DefaultSchedule.
	Schedule       []time.Duration
	Timeout        time.Duration // for a whole request; default 15 s
	ConnectTimeout time.Duration // for connecting, including TLS; default 5 s
	InFlight       int           // maximum number of requests to one webhook at once; default 8
	// TotalInFlight is the maximum number of requests at once. The default is
	// DefaultTotalInFlight. A quarter of the process's file descriptor limit caps it.
	TotalInFlight int
	DisableAfter  time.Duration // how long a webhook may fail before it is disabled; default 5 days
	// Grace is how long requests in flight may take after Run's context ends. The
	// default is 10 s.
	Grace   time.Duration
	Proxy   *url.URL       // HTTP proxy for all requests; default none
	RootCAs *x509.CertPool // default: the system's
}

// DefaultTotalInFlight is the default of Config.TotalInFlight.
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
	c.TotalInFlight = min(cmp.Or(c.TotalInFlight, DefaultTotalInFlight), descriptorLimit())
	c.DisableAfter = cmp.Or(c.DisableAfter, 5*24*time.Hour)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	return c
}
