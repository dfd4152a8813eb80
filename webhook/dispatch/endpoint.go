package dispatch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	// prefetchTime is how much work, measured in time, a fast endpoint claims in
	// advance, so that it does not wait for claims.
	prefetchTime = 250 * time.Millisecond
	maxPrefetch  = 256 // deliveries
)

// A job is a claimed delivery with its destination.
type job struct {
	to  outbound.Endpoint
	due outbound.DueDelivery
}

// A claim is the result of Outbox.Claim.
type claim struct {
	jobs []job
	full bool // the limit was reached, so more may be due
	err  error
}

// A completion reports to the endpoint that an attempt has ended.
type completion struct {
	number     int // of the attempt, see health.start
	how        ending
	took       time.Duration
	retryAfter time.Duration
	disabled   <-chan struct{} // closed when the webhook is recorded as disabled; nil if it stays active
}

// An ending is the way in which an attempt ended.
type ending int

const (
	endedInSuccess ending = iota
	endedInFailure
	endedByStop     // result unknown
	endedByShortage // not sent
)

// A lifetime holds the contexts of a dispatcher, which end in this order: work for
// starting anything new, requests for requests in flight, store for store calls.
type lifetime struct{ work, requests, store context.Context }

// An endpoint delivers to one webhook while deliveries are due and the webhook is not
// paused. Requests and claims run in their own goroutines; the endpoint waits for
// them before it ends. Only the endpoint's goroutine uses the fields below changed.
type endpoint struct {
	*attempter
	// retire removes the endpoint from the dispatcher. It returns false if there is
	// more to do.
	retire  func(e *endpoint, paused bool) bool
	life    lifetime
	id      string
	queued  bool          // deliveries were queued since it started; guarded by Dispatcher.mu
	woken   chan struct{} // capacity 1
	changed chan struct{} // capacity 1: claimed deliveries are out of date

	health      health
	latency     time.Duration // moving average of successful attempts; 0 if the webhook is failing
	queue       []job         // claimed and not started
	inFlight    int
	completions chan completion
	waiter      *waiter
	slot        *slot // for the next request

	more       bool // deliveries may be due
	claiming   bool
	stale      bool // woken during the claim, which may have missed deliveries
	outdated   bool // changed during the claim
	claims     chan claim
	claimWait  time.Duration    // how long to wait after the next failed claim
	claimAfter <-chan time.Time // no claim before it fires; nil: claim now
	disabling  <-chan struct{}  // closed when the webhook is recorded as disabled; nil: not disabling
}

func newEndpoint(a *attempter, retire func(*endpoint, bool) bool, life lifetime, id string, h health) *endpoint {
	return &endpoint{attempter: a, retire: retire, life: life, id: id, woken: make(chan struct{}, 1),
		changed: make(chan struct{}, 1), health: h, completions: make(chan completion, a.cfg.InFlight), waiter: newWaiter(),
		more: true, claims: make(chan claim, 1), claimWait: minStoreRetry}
}

func (e *endpoint) wake()   { signal(e.woken) }
func (e *endpoint) change() { signal(e.changed) }

func (e *endpoint) run() {
	for {
		select {
		case <-e.changed: // handled before new attempts start
			e.reset()
		default:
		}

		stopping, paused := e.life.work.Err() != nil, e.health.paused(e.cfg.Outbox.Now())
		gate := e.settler.gate()
		switch {
		case stopping || paused || e.disabling != nil:
			e.release(0)
			e.yieldSlot()
		case gate == nil:
			e.start()
			e.claim()
		}

		if e.prefetch() == 0 {
			e.release(max(0, e.health.limit-e.inFlight))
		}
		if !e.more && !e.claiming && len(e.queue) == 0 {
			e.yieldSlot()
		}

		if e.idle(stopping, paused) && e.retire(e, paused) {
			return
		}
		e.await(stopping, gate)
	}
}

// idle reports whether the endpoint has nothing to do or to wait for.
func (e *endpoint) idle(stopping, paused bool) bool {
	if e.inFlight > 0 || e.claiming || len(e.queue) > 0 {
		return false
	}
	return stopping || e.disabling == nil && (paused || !e.more)
}

// await waits for the next event and handles it.
func (e *endpoint) await(stopping bool, gate <-chan struct{}) {
	stop := e.life.work.Done()
	if stopping {
		stop, gate = nil, nil
	}

	select {
	case <-stop:
	case <-gate:
	case <-e.changed:
		e.reset()
	case <-e.woken:
		e.more, e.stale = true, e.claiming
	case <-e.claimAfter:
		e.claimAfter = nil
	case <-e.disabling:
		e.disabling = nil // a claim now sees whether the webhook is active
	case s := <-e.waiter.granted:
		e.slot = &s
	case c := <-e.claims:
		e.claimed(c)
	case c := <-e.completions:
		e.finished(c)
	}
}

// reset handles a change of the webhook: it releases deliveries that were claimed with
// the old URL and secret, and resets the health.
func (e *endpoint) reset() {
	e.release(0)
	e.outdated = e.claiming
	e.more = true
	e.health.reset()
}

// prefetch returns how many deliveries to claim in advance: as many as a fast
// endpoint completes within prefetchTime. A slow or failing endpoint claims only
// what it can start at once, because a crash delays claimed deliveries until their
// lease ends. An endpoint that fails now and then still prefetches.
func (e *endpoint) prefetch() int {
	if 2*e.health.limit < e.cfg.InFlight || e.latency == 0 {
		return 0
	}
	n := int(time.Duration(e.health.limit) * prefetchTime / e.latency)
	if n < 2*e.health.limit {
		return 0
	}
	return min(n, maxPrefetch)
}

// lease returns how long to lease deliveries: long enough for the queue and the
// request.
func (e *endpoint) lease() time.Duration { return 2 * e.cfg.Timeout }

// claim starts to claim due deliveries if there is room for them.
func (e *endpoint) claim() {
	if e.claiming || !e.more || e.claimAfter != nil {
		return
	}
	room := e.health.limit - e.inFlight - len(e.queue)
	if n := e.prefetch(); len(e.queue) <= n/2 {
		room += n
	}
	if room <= 0 {
		return
	}

	e.claiming = true
	go func() {
		to, due, err := e.cfg.Outbox.Claim(e.life.store, e.id, room, e.lease())
		c := claim{full: len(due) >= room, err: err}
		for _, d := range due {
			c.jobs = append(c.jobs, job{to, d})
		}
		e.claims <- c
	}()
}

// claimed adds claimed deliveries to the queue.
func (e *endpoint) claimed(c claim) {
	e.claiming = false
	e.more, e.stale = c.full || e.stale, false
	e.queue = append(e.queue, c.jobs...)
	if e.outdated {
		e.outdated, e.more = false, true
		e.release(0)
	}
	if c.err == nil {
		e.claimWait = minStoreRetry
		return
	}

	if e.claimWait == minStoreRetry { // log the first failure only
		e.cfg.Logger.Error("cannot claim deliveries; retrying", "webhook", e.id, "error", c.err)
	}
	e.more, e.claimAfter = true, time.After(e.claimWait)
	e.claimWait = min(2*e.claimWait, maxStoreRetry)
}

// start starts attempts up to the limit. If the lease of a delivery might end before
// its attempt, start releases the queue instead.
func (e *endpoint) start() {
	for e.inFlight < e.health.limit && len(e.queue) > 0 {
		j := e.queue[0]
		if left := j.due.Lease.Sub(e.cfg.Outbox.Now()); left < e.cfg.Timeout {
			e.release(0)
			e.more, e.claimAfter = true, time.After(minStoreRetry)
			return
		}
		s, ok := e.takeSlot()
		if !ok {
			return
		}

		e.queue[0] = job{}
		e.queue = e.queue[1:]
		e.inFlight++
		go e.attempt(j, s, e.health.start())
	}
}

// takeSlot returns a slot for one request. If it returns false, the slot comes through
// waiter.granted.
func (e *endpoint) takeSlot() (slot, bool) {
	if e.slot != nil {
		s := *e.slot
		e.slot = nil
		return s, true
	}
	return e.slots.take(e.waiter, !e.health.healthy)
}

// yieldSlot releases the unused slot, if any, and stops waiting for one.
func (e *endpoint) yieldSlot() {
	e.slots.cancel(e.waiter)
	if e.slot != nil {
		e.slot.release()
		e.slot = nil
	}
}

// attempt makes one attempt and reports its completion. It runs in its own goroutine.
func (e *endpoint) attempt(j job, s slot, number int) {
	outcome, sent, err := e.try(e.life.requests, j.to, j.due)
	s.release()

	switch {
	case errors.Is(err, errShortage):
		e.logShortage(err)
		e.releaseClaims([]outbound.DueDelivery{j.due})
		e.completions <- completion{number: number, how: endedByShortage}
	case err != nil:
		e.cfg.Logger.Info("stopped during a request; the delivery will be sent again", "webhook", e.id, "delivery", j.due.ID)
		e.completions <- completion{number: number, how: endedByStop}
	default:
		how := endedInSuccess
		if sent.result != resultSuccess {
			how = endedInFailure
		}
		e.completions <- completion{number, how, sent.took, sent.retryAfter, e.settler.add(outcome)}
	}
}

// finished handles the completion of an attempt.
func (e *endpoint) finished(c completion) {
	e.inFlight--
	if c.disabled != nil {
		e.disabling = c.disabled
	}

	now := e.cfg.Outbox.Now()
	switch c.how {
	case endedByShortage:
		e.more, e.health.lastAttempt = true, now
		e.health.pause(now, shortagePause)
	case endedInFailure:
		e.health.failed(now, c.number, c.retryAfter)
		if !e.health.healthy {
			e.latency = 0
		}
	case endedInSuccess:
		e.health.succeeded(now, e.cfg.InFlight)
		e.latency = max(1, (3*cmp.Or(e.latency, c.took)+c.took)/4)
	}
}

// release releases the deliveries in the queue beyond the first n, except those whose
// lease has ended: another dispatcher may have claimed them.
func (e *endpoint) release(n int) {
	if len(e.queue) <= n {
		return
	}

	var claims []outbound.DueDelivery
	now := e.cfg.Outbox.Now()
	for _, j := range e.queue[n:] {
		if j.due.Lease > now {
			claims = append(claims, j.due)
		}
	}

	e.queue = e.queue[:n:n]
	e.more = true
	if len(claims) > 0 {
		e.releaseClaims(claims)
	}
}

func (e *endpoint) releaseClaims(claims []outbound.DueDelivery) {
	if err := e.cfg.Outbox.Release(e.life.store, e.id, claims); err != nil {
		e.cfg.Logger.Warn("cannot release deliveries; they stay claimed until their lease ends", "webhook", e.id,
			"deliveries", len(claims), "error", err)
	}
}
