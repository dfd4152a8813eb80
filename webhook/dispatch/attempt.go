package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// An attempter attempts deliveries. All endpoints share it.
type attempter struct {
	cfg      Config
	sender   *sender
	settler  *settler
	slots    *slots
	counters *counters

	shortageMu     sync.Mutex
	shortageLogged time.Time // when a lack of file descriptors was last logged
}

func newAttempter(c Config) *attempter {
	n := newCounters()
	return &attempter{cfg: c, sender: newSender(c), settler: newSettler(c, n), slots: newSlots(c.TotalInFlight),
		counters: n}
}

// logShortage logs, at most once a minute, that no file descriptors are left.
func (a *attempter) logShortage(err error) {
	a.shortageMu.Lock()
	defer a.shortageMu.Unlock()
	if time.Since(a.shortageLogged) > time.Minute {
		a.shortageLogged = time.Now()
		a.cfg.Logger.Error("no file descriptors left for webhook requests; retrying (raise ulimit -n)", "error", err)
	}
}

// try makes one attempt of a delivery. It returns an error only if the attempt has no
// outcome: errShortage, or because the dispatcher stopped.
func (a *attempter) try(
	ctx context.Context, to outbound.Endpoint, due outbound.DueDelivery,
) (outbound.Outcome, sendResult, error) {
	a.counters.inFlight(1)
	s, err := a.sendRecovered(ctx, to, due)
	a.counters.inFlight(-1)
	if err != nil {
		return outbound.Outcome{}, s, err
	}

	o := outbound.Outcome{Webhook: to.Webhook, Delivery: due.ID, Attempt: s.attempt, Status: outbound.DeliverySucceeded,
		Tries: due.Tries, Lease: due.Lease}
	if s.result != resultSuccess {
		o.Status = outbound.DeliveryFailed
		if s.result == resultGone {
			o.Disable = s.attempt.Error
		} else if wait, ok := retryIn(a.cfg.Schedule, due.Tries, s.retryAfter); ok {
			o.Status, o.RetryAt = outbound.DeliveryPending, a.cfg.Outbox.Now().Add(wait)
		}
	}
	a.counters.observe(s.result, s.took, o.Status)
	return o, s, nil
}

// sendRecovered sends a delivery and turns a panic into a failed attempt, so that no
// response can end the process.
func (a *attempter) sendRecovered(
	ctx context.Context, to outbound.Endpoint, due outbound.DueDelivery,
) (s sendResult, err error) {
	at, start := a.cfg.Outbox.Now(), time.Now()
	defer func() {
		if p := recover(); p != nil {
			a.cfg.Logger.Error("panic while sending a delivery", "webhook", to.Webhook, "delivery", due.ID, "panic", p, "stack",
				string(debug.Stack()))
			s = sendResult{result: resultInternal, took: time.Since(start), attempt: outbound.Attempt{
				Number: due.Attempts + 1, At: at, Error: clean(fmt.Sprintf("internal error: %v", p)),
				Request: outbound.AttemptRequest{URL: to.URL, Headers: map[string][]string{}}}}
			s.attempt.DurationMS, err = s.took.Milliseconds(), nil
		}
	}()
	return a.sender.send(ctx, to, due)
}
