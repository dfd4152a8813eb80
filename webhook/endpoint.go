package webhook

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// ahead is how much work, in time, a quick endpoint holds claimed beyond
	// what is in flight, so that it need not wait for claims.
	ahead    = 500 * time.Millisecond
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
	ok   bool
	took time.Duration
	gone <-chan struct{} // closed when it is written that the webhook is disabled
}

// An endpoint delivers to one webhook for as long as there is something due.
// Requests and claims have goroutines of their own, which it waits for before
// it ends. Fields below woken belong to its own goroutine.
type endpoint struct {
	d     *Dispatcher
	life  span
	id    string
	woken chan struct{} // capacity 1

	limit    int           // requests at once: fewer after a failure
	latency  time.Duration // of successes, a moving mean; 0 after a failure
	queue    []job         // claimed and not begun
	inFlight int
	dones    chan done

	more     bool // there may be deliveries due
	claiming bool
	stale    bool // woken while claiming: what is claimed may not be all
	claims   chan claim
	wait     time.Duration    // after the next claim that fails
	pause    <-chan time.Time // until this, no claim
	gone     <-chan struct{}
}

func newEndpoint(d *Dispatcher, life span, id string, failing bool) *endpoint {
	e := &endpoint{d: d, life: life, id: id, woken: make(chan struct{}, 1), limit: d.cfg.InFlight,
		dones: make(chan done, d.cfg.InFlight), claims: make(chan claim, 1), more: true, wait: minPause}
	if failing {
		e.limit = 1
	}
	return e
}

func (e *endpoint) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

func (e *endpoint) run() {
	for {
		stopping := e.life.work.Err() != nil
		gate := e.d.settler.gate()
		switch {
		case stopping || e.gone != nil:
			e.release(0)
		case gate == nil:
			e.start()
			e.claim()
		}
		if e.ahead() == 0 {
			e.release(max(0, e.limit-e.inFlight))
		}
		if e.inFlight == 0 && !e.claiming && len(e.queue) == 0 && (stopping || !e.more && e.gone == nil) && e.d.retire(e) {
			return
		}
		e.await(stopping, gate)
	}
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
	case <-e.woken:
		e.more, e.stale = true, e.claiming
	case <-e.pause:
		e.pause = nil
	case <-e.gone:
		e.gone = nil // from now on a claim finds the webhook inactive, or active again
	case c := <-e.claims:
		e.claimed(c)
	case r := <-e.dones:
		e.finished(r)
	}
}

// ahead returns how many deliveries to hold beyond those in flight: what a
// quick endpoint does in half a second. One that is slow or fails holds no
// more than it can begin at once, or a crash would delay them by their lease.
func (e *endpoint) ahead() int {
	if e.limit < e.d.cfg.InFlight || e.latency == 0 {
		return 0
	}
	n := int(time.Duration(e.limit) * ahead / e.latency)
	if n < 2*e.limit {
		return 0
	}
	return min(n, maxAhead)
}

// lease outlives what a delivery may wait in the queue, and its request.
func (e *endpoint) lease() time.Duration { return 2 * e.d.cfg.Timeout }

// claim asks for deliveries if there is room for them.
func (e *endpoint) claim() {
	if e.claiming || !e.more || e.pause != nil {
		return
	}
	room := e.limit - e.inFlight - len(e.queue)
	if n := e.ahead(); len(e.queue) <= n/2 {
		room += n
	}
	if room <= 0 {
		return
	}
	e.claiming = true
	go func() {
		to, due, err := e.d.cfg.Outbox.Claim(e.life.store, e.id, room, e.lease())
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
	if c.err == nil {
		e.wait = minPause
		return
	}
	if e.wait == minPause { // the first time
		e.d.cfg.Logger.Error("cannot claim deliveries; trying again", "webhook", e.id, "error", c.err)
	}
	e.more, e.pause = true, time.After(e.wait)
	e.wait = min(2*e.wait, maxPause)
}

// start begins as many attempts as may be in flight. A delivery whose lease
// might end before its attempt does is not begun.
func (e *endpoint) start() {
	for e.inFlight < e.limit && len(e.queue) > 0 {
		j := e.queue[0]
		if left := j.due.Lease.Sub(e.d.cfg.Outbox.Now()); left < e.d.cfg.Timeout {
			e.release(0)
			e.more, e.pause = true, time.After(minPause)
			return
		}
		e.queue[0] = job{}
		e.queue = e.queue[1:]
		e.inFlight++
		go e.attempt(j)
	}
}

func (e *endpoint) attempt(j job) {
	outcome, sent, err := e.d.try(e.life.requests, j.to, j.due)
	if err != nil {
		e.d.cfg.Logger.Info("stopped during a request: its delivery will be sent again", "webhook", e.id, "delivery", j.due.ID)
		e.dones <- done{}
		return
	}
	e.dones <- done{ok: sent.result == resultSuccess, took: sent.took, gone: e.d.settler.add(outcome)}
}

func (e *endpoint) finished(r done) {
	e.inFlight--
	if r.gone != nil {
		e.gone = r.gone
	}
	if !r.ok {
		e.limit, e.latency = 1, 0
		return
	}
	e.limit = min(2*e.limit, e.d.cfg.InFlight)
	if e.latency == 0 {
		e.latency = r.took
	}
	e.latency = max(1, (3*e.latency+r.took)/4)
}

// release gives back what is in the queue beyond the first n. What is not
// leased any more is somebody else's already.
func (e *endpoint) release(n int) {
	if len(e.queue) <= n {
		return
	}
	var ids []string
	now := e.d.cfg.Outbox.Now()
	for _, j := range e.queue[n:] {
		if j.due.Lease > now {
			ids = append(ids, j.due.ID)
		}
	}
	e.queue = e.queue[:n:n]
	e.more = true
	if len(ids) == 0 {
		return
	}
	if err := e.d.cfg.Outbox.Release(e.life.store, e.id, ids); err != nil {
		e.d.cfg.Logger.Warn("cannot give deliveries back: they wait for the end of their lease", "webhook", e.id, "deliveries", len(ids), "error", err)
	}
}
