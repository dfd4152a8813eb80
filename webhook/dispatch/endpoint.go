package dispatch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// ahead is how much work, in time, a quick endpoint holds claimed beyond
	// what is in flight, so that it need not wait for claims.
	ahead    = 250 * time.Millisecond
	maxAhead = 256 // deliveries
)

// A job is a claimed delivery and where it goes.
type job struct {
	to  ledger.Endpoint
	due ledger.DueDelivery
}

// A claim is what came of asking the outbox.
type claim struct {
	jobs []job
	full bool // as many as were asked for: there may be more
	err  error
}

// A done tells the endpoint that an attempt is over.
type done struct {
	how        ending
	took       time.Duration
	retryAfter time.Duration
	disabled   <-chan struct{} // closed when it is written that the webhook is; nil if it is not
}

// An ending is how an attempt came to its end.
type ending int

const (
	endedWell ending = iota
	endedBadly
	endedByStop     // nobody knows
	endedByShortage // before it began
)

// A span is the three lengths of a dispatcher's life, each longer than the one
// before: beginning something new, finishing requests, using the store.
type span struct{ work, requests, store context.Context }

// An endpoint delivers to one webhook for as long as there is something due,
// and it is not paused. Requests and claims have goroutines of their own, which
// it waits for before it ends. Fields below changed belong to its own
// goroutine.
type endpoint struct {
	*attempter
	// retire takes the endpoint off the dispatcher's list. It returns false if there is
	// more to do.
	retire  func(e *endpoint, paused bool) bool
	life    span
	id      string
	queued  bool          // deliveries were queued since it began; under the dispatcher's lock
	woken   chan struct{} // capacity 1
	changed chan struct{} // capacity 1: what is claimed is out of date

	standing standing
	latency  time.Duration // of successes, a moving mean; 0 after a failure
	queue    []job         // claimed and not begun
	inFlight int
	dones    chan done
	turn     *turn
	slot     *slot // for the next request

	more      bool // there may be deliveries due
	claiming  bool
	stale     bool // woken while claiming: what is claimed may not be all
	outdated  bool // changed while claiming
	claims    chan claim
	wait      time.Duration    // after the next claim that fails
	hold      <-chan time.Time // until this, no claim
	disabling <-chan struct{}  // until this, the webhook is active although it should not be
}

func newEndpoint(a *attempter, retire func(*endpoint, bool) bool, life span, id string, s standing) *endpoint {
	return &endpoint{attempter: a, retire: retire, life: life, id: id, woken: make(chan struct{}, 1),
		changed: make(chan struct{}, 1), standing: s,
		dones: make(chan done, a.cfg.InFlight), turn: newTurn(), claims: make(chan claim, 1), more: true, wait: minPause}
}

func (e *endpoint) wake()   { signal(e.woken) }
func (e *endpoint) change() { signal(e.changed) }

func (e *endpoint) run() {
	for {
		select {
		case <-e.changed: // before anything else is begun
			e.startAnew()
		default:
		}
		stopping, paused := e.life.work.Err() != nil, e.standing.paused(e.cfg.Outbox.Now())
		gate := e.settler.gate()
		switch {
		case stopping || paused || e.disabling != nil:
			e.release(0)
			e.yieldSlot()
		case gate == nil:
			e.start()
			e.claim()
		}
		if e.ahead() == 0 {
			e.release(max(0, e.standing.limit-e.inFlight))
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

// idle reports whether there is nothing left to do or to wait for.
func (e *endpoint) idle(stopping, paused bool) bool {
	if e.inFlight > 0 || e.claiming || len(e.queue) > 0 {
		return false
	}
	return stopping || e.disabling == nil && (paused || !e.more)
}

// await waits until something has changed.
func (e *endpoint) await(stopping bool, gate <-chan struct{}) {
	stop := e.life.work.Done()
	if stopping {
		stop, gate = nil, nil
	}
	select {
	case <-stop:
	case <-gate:
	case <-e.changed:
		e.startAnew()
	case <-e.woken:
		e.more, e.stale = true, e.claiming
	case <-e.hold:
		e.hold = nil
	case <-e.disabling:
		e.disabling = nil // from now on a claim finds the webhook inactive, or active again
	case s := <-e.turn.granted:
		e.slot = &s
	case c := <-e.claims:
		e.claimed(c)
	case r := <-e.dones:
		e.finished(r)
	}
}

// startAnew gives back what was claimed with the URL and secret of before, and
// forgets what failed with them.
func (e *endpoint) startAnew() {
	e.release(0)
	e.outdated = e.claiming
	e.more = true
	e.standing.renew()
}

// ahead returns how many deliveries to hold beyond those in flight: what a quick
// endpoint completes within the constant ahead. One that is slow or fails holds
// no more than it can begin at once, or a crash would delay them by their lease.
func (e *endpoint) ahead() int {
	if e.standing.limit < e.cfg.InFlight || e.latency == 0 {
		return 0
	}
	n := int(time.Duration(e.standing.limit) * ahead / e.latency)
	if n < 2*e.standing.limit {
		return 0
	}
	return min(n, maxAhead)
}

// lease outlives what a delivery may wait in the queue, and its request.
func (e *endpoint) lease() time.Duration { return 2 * e.cfg.Timeout }

// claim asks for deliveries if there is room for them.
func (e *endpoint) claim() {
	if e.claiming || !e.more || e.hold != nil {
		return
	}
	room := e.standing.limit - e.inFlight - len(e.queue)
	if n := e.ahead(); len(e.queue) <= n/2 {
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

func (e *endpoint) claimed(c claim) {
	e.claiming = false
	e.more, e.stale = c.full || e.stale, false
	e.queue = append(e.queue, c.jobs...)
	if e.outdated {
		e.outdated, e.more = false, true
		e.release(0)
	}
	if c.err == nil {
		e.wait = minPause
		return
	}
	if e.wait == minPause { // the first time
		e.cfg.Logger.Error("cannot claim deliveries; trying again", "webhook", e.id, "error", c.err)
	}
	e.more, e.hold = true, time.After(e.wait)
	e.wait = min(2*e.wait, maxPause)
}

// start begins as many attempts as may be in flight. A delivery whose lease
// might end before its attempt does is not begun.
func (e *endpoint) start() {
	for e.inFlight < e.standing.limit && len(e.queue) > 0 {
		j := e.queue[0]
		if left := j.due.Lease.Sub(e.cfg.Outbox.Now()); left < e.cfg.Timeout {
			e.release(0)
			e.more, e.hold = true, time.After(minPause)
			return
		}
		mine, ok := e.takeSlot()
		if !ok {
			return
		}
		e.queue[0] = job{}
		e.queue = e.queue[1:]
		e.inFlight++
		go e.attempt(j, mine)
	}
}

// takeSlot returns what allows one request, or false if it has to be waited for.
func (e *endpoint) takeSlot() (slot, bool) {
	if e.slot != nil {
		mine := *e.slot
		e.slot = nil
		return mine, true
	}
	return e.slots.take(e.turn, !e.standing.healthy)
}

// yieldSlot leaves to others what there is no use for.
func (e *endpoint) yieldSlot() {
	e.slots.leave(e.turn)
	if e.slot != nil {
		e.slot.give()
		e.slot = nil
	}
}

func (e *endpoint) attempt(j job, mine slot) {
	outcome, sent, err := e.try(e.life.requests, j.to, j.due)
	mine.give()
	switch {
	case errors.Is(err, errShortage):
		e.noteShortage(err)
		e.giveBack([]string{j.due.ID})
		e.dones <- done{how: endedByShortage}
	case err != nil:
		e.cfg.Logger.Info("stopped during a request: its delivery will be sent again", "webhook", e.id, "delivery", j.due.ID)
		e.dones <- done{how: endedByStop}
	default:
		how := endedWell
		if sent.result != resultSuccess {
			how = endedBadly
		}
		e.dones <- done{how, sent.took, sent.retryAfter, e.settler.add(outcome)}
	}
}

func (e *endpoint) finished(r done) {
	e.inFlight--
	if r.disabled != nil {
		e.disabling = r.disabled
	}
	now := e.cfg.Outbox.Now()
	switch r.how {
	case endedByShortage:
		e.more, e.standing.tried = true, now
		e.standing.until = max(e.standing.until, now.Add(shortagePause))
	case endedBadly:
		e.latency = 0
		e.standing.failed(now, r.retryAfter)
	case endedWell:
		e.standing.succeeded(now, e.cfg.InFlight)
		e.latency = max(1, (3*cmp.Or(e.latency, r.took)+r.took)/4)
	}
}

// release gives back what is in the queue beyond the first n. What is not
// leased any more is somebody else's already.
func (e *endpoint) release(n int) {
	if len(e.queue) <= n {
		return
	}
	var ids []string
	now := e.cfg.Outbox.Now()
	for _, j := range e.queue[n:] {
		if j.due.Lease > now {
			ids = append(ids, j.due.ID)
		}
	}
	e.queue = e.queue[:n:n]
	e.more = true
	if len(ids) > 0 {
		e.giveBack(ids)
	}
}

func (e *endpoint) giveBack(ids []string) {
	if err := e.cfg.Outbox.Release(e.life.store, e.id, ids); err != nil {
		e.cfg.Logger.Warn("cannot give deliveries back: they wait for the end of their lease", "webhook", e.id, "deliveries",
			len(ids), "error", err)
	}
}
