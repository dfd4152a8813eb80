// Package dispatch sends webhook deliveries from the outbox to their receivers: signed,
// at least once, and never to private addresses unless they are allowed.
package dispatch

import (
	"context"
	"maps"
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
	*attempter

	mu        sync.Mutex
	endpoints map[string]*endpoint // those at work
	known     map[string]standing  // of webhooks not at work that were, not long ago
	working   sync.WaitGroup       // the endpoints' goroutines
}

// New returns a Dispatcher; Run makes it work.
func New(c Config) *Dispatcher {
	c = c.withDefaults()
	return &Dispatcher{attempter: newAttempter(c), endpoints: map[string]*endpoint{}, known: map[string]standing{}}
}

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
	e := newEndpoint(d.attempter, d.retire, life, id, s)
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

// Stats returns what the dispatcher has done until now.
func (d *Dispatcher) Stats() Stats {
	d.counters.mu.Lock()
	defer d.counters.mu.Unlock()
	s := d.counters.stats
	s.Attempts, s.Deliveries, s.Seconds.Buckets = maps.Clone(s.Attempts), maps.Clone(s.Deliveries),
		maps.Clone(s.Seconds.Buckets)
	return s
}
