// Package dispatch sends webhook deliveries from the outbox to their receivers. It
// signs them, delivers at least once, and refuses private addresses that are not
// allowed. Each webhook with due deliveries has an endpoint, a goroutine that ends when
// none is left. A receiver that fails or hangs gets one request at a time, and those that
// fail get half of all requests at most, so that they do not block the others.
package dispatch

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// poll is how often the dispatcher looks for due deliveries that nothing
	// signals: retries, ended leases, and deliveries queued by other processes.
	poll = time.Second
	// storeGrace is how long the store may take, after Grace, to record the last
	// outcomes.
	storeGrace = 2 * time.Second
)

// A Dispatcher sends the deliveries in an outbox.
type Dispatcher struct {
	*attempter

	mu        sync.Mutex
	endpoints map[string]*endpoint // by webhook id; those with work to do
	health    map[string]health    // of webhooks without an endpoint that had one recently
	working   sync.WaitGroup       // the endpoints' goroutines
}

// New returns a Dispatcher. Run starts it.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	return &Dispatcher{attempter: newAttempter(c), endpoints: map[string]*endpoint{}, health: map[string]health{}}
}

// Run delivers until ctx ends. It then releases the deliveries that were claimed but
// not sent, and gives requests in flight Config.Grace to finish. A request that
// takes longer is cancelled; its delivery is sent again when the lease ends. Run may
// be called only once.
func (d *Dispatcher) Run(ctx context.Context) {
	base := context.WithoutCancel(ctx)
	requests, endRequests := context.WithCancel(base)
	defer endRequests()
	store, endStore := context.WithCancel(base)
	defer endStore()
	life := lifetime{work: ctx, requests: requests, store: store}

	var settling, watching sync.WaitGroup
	settling.Go(func() { d.settler.run(store) })
	watching.Go(func() { d.watchSignals(life) })
	watching.Go(func() { d.watchTime(life) })
	watching.Wait() // until ctx ends; no endpoint starts after this

	defer time.AfterFunc(d.cfg.Grace, endRequests).Stop()
	defer time.AfterFunc(d.cfg.Grace+storeGrace, endStore).Stop()
	d.working.Wait()
	d.settler.close()
	settling.Wait()
	d.sender.close()
}

func (d *Dispatcher) watchSignals(life lifetime) {
	for {
		select {
		case <-life.work.Done():
			return
		case <-d.cfg.Outbox.Queued():
			queued, changed := d.cfg.Outbox.TakeQueued()
			for _, id := range changed {
				d.changed(id)
			}
			for _, id := range queued {
				d.wake(life, id, true)
			}
		}
	}
}

func (d *Dispatcher) watchTime(life lifetime) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	failed := false
	for {
		due, err := d.cfg.Outbox.DueWebhooks(life.work)
		if err != nil && !failed && life.work.Err() == nil {
			d.cfg.Logger.Error("cannot list webhooks with due deliveries; retrying", "error", err)
		}
		failed = err != nil
		for _, id := range due {
			d.wake(life, id, false)
		}
		d.forget(d.cfg.Outbox.Now().Add(-forgetAfter))

		select {
		case <-life.work.Done():
			return
		case <-tick.C:
		}
	}
}

// wake makes the endpoint of a webhook look for deliveries, and starts one if
// necessary. If the webhook is paused it starts none, unless a probe is due.
// queued reports whether a delivery was queued just now.
func (d *Dispatcher) wake(life lifetime, id string, queued bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[id]; ok {
		e.queued = e.queued || queued
		e.wake()
		return
	}

	h, ok := d.health[id]
	if !ok {
		h.limit = 1
	}
	if h.probeWanted = h.probeWanted || queued; !h.ready(d.cfg.Outbox.Now()) {
		d.health[id] = h // the next poll wakes it again
		return
	}

	h.resume()
	delete(d.health, id)
	e := newEndpoint(d.attempter, d.retire, life, id, h)
	d.endpoints[id] = e
	d.counters.endpoints(1)
	d.working.Go(e.run)
}

// changed handles a change of a webhook. Failures at the old URL say nothing about
// the new one.
func (d *Dispatcher) changed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[id]; ok {
		e.change()
		return
	}
	if h, ok := d.health[id]; ok {
		h.reset()
		d.health[id] = h
	}
}

// retire removes an endpoint that is idle or paused, and reports whether it did. It
// keeps one that was changed, or woken while not paused; both take the same lock, so
// none is lost. For a paused webhook, the poll starts an endpoint after the pause.
func (d *Dispatcher) retire(e *endpoint, paused bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.life.work.Err() == nil && (len(e.changed) > 0 || len(e.woken) > 0 && !paused) {
		return false
	}
	delete(d.endpoints, e.id)
	if e.health.lastAttempt != 0 {
		e.health.probeWanted = paused && e.queued
		d.health[e.id] = e.health
	}
	d.counters.endpoints(-1)
	return true
}

// forget drops the health of webhooks whose last attempt ended before a time.
func (d *Dispatcher) forget(before ledger.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.health, func(_ string, h health) bool { return h.lastAttempt < before })
}

// Stats returns a copy of the current statistics.
func (d *Dispatcher) Stats() Stats {
	d.counters.mu.Lock()
	defer d.counters.mu.Unlock()
	s := d.counters.stats
	s.Attempts, s.Deliveries, s.Seconds.Buckets = maps.Clone(s.Attempts), maps.Clone(s.Deliveries),
		maps.Clone(s.Seconds.Buckets)
	return s
}
