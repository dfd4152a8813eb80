package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// An attempter makes attempts of deliveries. All endpoints share it.
type attempter struct {
	cfg      Config
	sender   *sender
	settler  *settler
	slots    *slots
	counters *counters

	logging  sync.Mutex
	shortage time.Time // when a lack of file descriptors was last logged
}

func newAttempter(c Config) *attempter {
	n := newCounters()
	return &attempter{cfg: c, sender: newSender(c), settler: newSettler(c, n), slots: newSlots(c.TotalInFlight),
		counters: n}
}

// noteShortage logs, once in a while, that there are no file descriptors left.
func (a *attempter) noteShortage(err error) {
	a.logging.Lock()
	defer a.logging.Unlock()
	if time.Since(a.shortage) > time.Minute {
		a.shortage = time.Now()
		a.cfg.Logger.Error("no file descriptors are left to send webhooks with: raise the limit (ulimit -n), or lower "+
			"webhooks.total_in_flight; trying again", "error", err)
	}
}

// try makes one attempt of a delivery. It returns an error only when there is
// no outcome: the dispatcher has stopped before, or errShortage.
func (a *attempter) try(ctx context.Context, to ledger.Endpoint, due ledger.DueDelivery) (ledger.Outcome, sent, error) {
	a.counters.inFlight(1)
	s, err := a.sendContained(ctx, to, due)
	a.counters.inFlight(-1)
	if err != nil {
		return ledger.Outcome{}, s, err
	}
	o := ledger.Outcome{Webhook: to.Webhook, Delivery: due.ID, Attempt: s.attempt, Status: ledger.DeliverySucceeded,
		Tries: due.Tries, Lease: due.Lease}
	if s.result != resultSuccess {
		o.Status = ledger.DeliveryFailed
		if s.result == resultGone {
			o.Disable = s.attempt.Error
		} else if wait, again := retryIn(a.cfg.Schedule, due.Tries, s.retryAfter); again {
			o.Status, o.RetryAt = ledger.DeliveryPending, a.cfg.Outbox.Now().Add(wait)
		}
	}
	a.counters.observe(s.result, s.took, o.Status)
	return o, s, nil
}

// sendContained makes of a panic a failed attempt: no receiver's answer may
// end the process.
func (a *attempter) sendContained(ctx context.Context, to ledger.Endpoint, due ledger.DueDelivery) (s sent, err error) {
	at, start := a.cfg.Outbox.Now(), time.Now()
	defer func() {
		if p := recover(); p != nil {
			a.cfg.Logger.Error("panic while sending a delivery", "webhook", to.Webhook, "delivery", due.ID, "panic", p, "stack",
				string(debug.Stack()))
			s = sent{result: resultInternal, took: time.Since(start), attempt: ledger.Attempt{Number: due.Attempts + 1, At: at,
				Error:   clean(fmt.Sprintf("ledgerd failed: %v", p)),
				Request: ledger.AttemptRequest{URL: to.URL, Headers: map[string][]string{}}}}
			s.attempt.DurationMS, err = s.took.Milliseconds(), nil
		}
	}()
	return a.sender.send(ctx, to, due)
}
