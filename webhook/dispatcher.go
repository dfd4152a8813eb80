package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
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
	Claim(ctx context.Context, webhook string, limit int, lease time.Duration) (ledger.Endpoint, []ledger.DueDelivery, error)
	// RecordOutcomes writes what came of attempts. A webhook that has only failed for
	// disableAfter becomes inactive.
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
	DisableAfter   time.Duration // of nothing but failure, 5 days
	// Grace is how long requests in flight may go on when Run's context ends; 10 s.
	Grace   time.Duration
	Proxy   *url.URL       // that all requests go through; none
	RootCAs *x509.CertPool // the system's
}

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
	c.DisableAfter = cmp.Or(c.DisableAfter, 5*24*time.Hour)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	return c
}

const (
	// poll is how often the dispatcher looks for what nothing signals: retries,
	// leases that have ended, and what other processes have written.
	poll = time.Second
	// storeGrace is how long, after Grace, the store may take for what is left.
	storeGrace = 2 * time.Second
)

// A Dispatcher sends the deliveries in an outbox. It is also a Prometheus
// collector of what it does.
type Dispatcher struct {
	cfg     Config
	sender  *sender
	settler *settler
	metrics *metrics

	mu        sync.Mutex
	endpoints map[string]*endpoint // those at work
	failing   map[string]bool      // those not at work whose last attempt failed
	working   sync.WaitGroup       // the endpoints' goroutines
}

// New returns a Dispatcher; Run makes it work.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	m := newMetrics()
	return &Dispatcher{cfg: c, sender: newSender(c), settler: newSettler(c, m), metrics: m,
		endpoints: map[string]*endpoint{}, failing: map[string]bool{}}
}

// A span is the three lengths of a dispatcher's life, each longer than the one
// before: beginning something new, finishing requests, using the store.
type span struct{ work, requests, store context.Context }

// Run delivers until ctx ends. Then requests in flight may finish, for as long
// as Config.Grace, and what was claimed and not sent is given back. A request
// that takes longer is cut off, and its delivery tried again when its lease
// ends. Run may be called once.
func (d *Dispatcher) Run(ctx context.Context) {
	base := context.WithoutCancel(ctx)
	requests, endRequests := context.WithCancel(base)
	defer endRequests()
	store, endStore := context.WithCancel(base)
	defer endStore()
	life := span{work: ctx, requests: requests, store: store}

	var settling, watching sync.WaitGroup
	settling.Go(func() { d.settler.run(store) })
	watching.Go(func() { d.watchSignals(life) })
	watching.Go(func() { d.watchTime(life) })
	watching.Wait() // until ctx ends: from here on no endpoint is started
	defer time.AfterFunc(d.cfg.Grace, endRequests).Stop()
	defer time.AfterFunc(d.cfg.Grace+storeGrace, endStore).Stop()
	d.working.Wait()
	d.settler.close()
	settling.Wait()
	d.sender.close()
}

func (d *Dispatcher) watchSignals(life span) {
	for {
		select {
		case <-life.work.Done():
			return
		case <-d.cfg.Outbox.Queued():
			queued, changed := d.cfg.Outbox.TakeQueued()
			for _, id := range slices.Concat(queued, changed) {
				d.wake(life, id)
			}
		}
	}
}

func (d *Dispatcher) watchTime(life span) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	failed := false
	for {
		due, err := d.cfg.Outbox.DueWebhooks(life.work)
		if err != nil && !failed && life.work.Err() == nil {
			d.cfg.Logger.Error("cannot read which webhooks have deliveries due", "error", err)
		}
		failed = err != nil
		for _, id := range due {
			d.wake(life, id)
		}
		select {
		case <-life.work.Done():
			return
		case <-tick.C:
		}
	}
}

// wake lets a webhook's endpoint look for deliveries.
func (d *Dispatcher) wake(life span, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[id]; ok {
		e.wake()
		return
	}
	e := newEndpoint(d, life, id, d.failing[id])
	delete(d.failing, id)
	d.endpoints[id] = e
	d.metrics.endpoints.Inc()
	d.working.Go(e.run)
}

// retire takes an endpoint that has nothing left to do off the list, unless it
// was woken meanwhile: wakes happen under the same lock, so that none is lost.
func (d *Dispatcher) retire(e *endpoint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(e.woken) > 0 && e.life.work.Err() == nil {
		return false
	}
	delete(d.endpoints, e.id)
	if e.limit < d.cfg.InFlight {
		d.failing[e.id] = true
	}
	d.metrics.endpoints.Dec()
	return true
}

// try makes one attempt of a delivery. It returns an error only when the
// dispatcher stops before there is an outcome.
func (d *Dispatcher) try(ctx context.Context, to ledger.Endpoint, due ledger.DueDelivery) (ledger.Outcome, sent, error) {
	d.metrics.inFlight.Inc()
	s, err := d.sendContained(ctx, to, due)
	d.metrics.inFlight.Dec()
	if err != nil {
		return ledger.Outcome{}, s, err
	}
	o := ledger.Outcome{Webhook: to.Webhook, Delivery: due.ID, Attempt: s.attempt, Status: ledger.DeliverySucceeded,
		Tries: due.Tries, Lease: due.Lease}
	if s.result != resultSuccess {
		o.Status = ledger.DeliveryFailed
		if s.result == resultGone {
			o.Disable = s.attempt.Error
		} else if wait, again := retryIn(d.cfg.Schedule, due.Tries, s.retryAfter); again {
			o.Status, o.RetryAt = ledger.DeliveryPending, d.cfg.Outbox.Now().Add(wait)
		}
	}
	d.metrics.observe(s, o.Status)
	return o, s, nil
}

// sendContained makes of a panic a failed attempt: no receiver's answer may
// end the process.
func (d *Dispatcher) sendContained(ctx context.Context, to ledger.Endpoint, due ledger.DueDelivery) (s sent, err error) {
	at, start := d.cfg.Outbox.Now(), time.Now()
	defer func() {
		if p := recover(); p != nil {
			d.cfg.Logger.Error("panic while sending a delivery", "webhook", to.Webhook, "delivery", due.ID, "panic", p, "stack", string(debug.Stack()))
			s = sent{result: resultInternal, took: time.Since(start), attempt: ledger.Attempt{Number: due.Attempts + 1, At: at,
				Error:   clean(fmt.Sprintf("ledgerd failed: %v", p)),
				Request: ledger.AttemptRequest{URL: to.URL, Headers: map[string][]string{}}}}
			s.attempt.DurationMS, err = s.took.Milliseconds(), nil
		}
	}()
	return d.sender.send(ctx, to, due)
}
