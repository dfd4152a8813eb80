// Package dispatch sends webhook deliveries from the outbox to their receivers: signed,
// at least once, and never to private addresses unless they are allowed.
package dispatch

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// poll is how often the dispatcher looks for what nothing signals: retries,
	// leases that have ended, and what other processes have written.
	poll = time.Second
	// storeGrace is how long, after Grace, the store may take for what is left.
	storeGrace = 2 * time.Second
)

// A Dispatcher sends the deliveries in an outbox.
type Dispatcher struct {
	cfg      Config
	sender   *sender
	settler  *settler
	slots    *slots
	counters *counters

	mu        sync.Mutex
	endpoints map[string]*endpoint // those at work
	known     map[string]standing  // of webhooks not at work that were, not long ago
	shortage  time.Time            // when a lack of file descriptors was last logged
	working   sync.WaitGroup       // the endpoints' goroutines
}

// New returns a Dispatcher; Run makes it work.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	n := newCounters()
	return &Dispatcher{cfg: c, sender: newSender(c), settler: newSettler(c, n), slots: newSlots(c.TotalInFlight), counters: n,
		endpoints: map[string]*endpoint{}, known: map[string]standing{}}
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
			for _, id := range changed {
				d.changed(id)
			}
			for _, id := range queued {
				d.wake(life, id, true)
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

// wake lets a webhook's endpoint look for deliveries. One that is paused is
// left alone until its pause is over, or for a while if something was queued
// for it just now.
func (d *Dispatcher) wake(life span, id string, queued bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[id]; ok {
		e.queued = e.queued || queued
		e.wake()
		return
	}
	s, known := d.known[id]
	if !known {
		s.limit = 1
	}
	if s.asked = s.asked || queued; !s.ready(d.cfg.Outbox.Now()) {
		d.known[id] = s // the next look at what is due comes back to it
		return
	}
	s.resume()
	delete(d.known, id)
	e := newEndpoint(d, life, id, s)
	d.endpoints[id] = e
	d.counters.endpoints(1)
	d.working.Go(e.run)
}

// changed takes note that a webhook is not what it was. What failed at its old
// URL says nothing about the new one.
func (d *Dispatcher) changed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.endpoints[id]; ok {
		e.change()
		return
	}
	if s, ok := d.known[id]; ok {
		s.renew()
		d.known[id] = s
	}
}

// retire takes an endpoint that has nothing left to do, or is paused, off the
// list, unless it was woken meanwhile: wakes happen under the same lock, so
// that none is lost. A paused one is found again by what is due.
func (d *Dispatcher) retire(e *endpoint, paused bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.life.work.Err() == nil && (len(e.changed) > 0 || len(e.woken) > 0 && !paused) {
		return false
	}
	delete(d.endpoints, e.id)
	if e.standing.tried != 0 {
		e.standing.asked = paused && e.queued
		d.known[e.id] = e.standing
	}
	d.counters.endpoints(-1)
	return true
}

// forget drops what is known of webhooks that were last tried before a time.
func (d *Dispatcher) forget(before ledger.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.known, func(_ string, s standing) bool { return s.tried < before })
}

// noteShortage logs, once in a while, that there are no file descriptors left.
func (d *Dispatcher) noteShortage(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.shortage) > time.Minute {
		d.shortage = time.Now()
		d.cfg.Logger.Error("no file descriptors are left to send webhooks with: raise the limit (ulimit -n), or lower webhooks.total_in_flight; trying again", "error", err)
	}
}

// try makes one attempt of a delivery. It returns an error only when there is
// no outcome: the dispatcher has stopped before, or errShortage.
func (d *Dispatcher) try(ctx context.Context, to ledger.Endpoint, due ledger.DueDelivery) (ledger.Outcome, sent, error) {
	d.counters.inFlight(1)
	s, err := d.sendContained(ctx, to, due)
	d.counters.inFlight(-1)
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
	d.counters.observe(s.result, s.took, o.Status)
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
