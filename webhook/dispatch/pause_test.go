package dispatch_test

import (
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// An outage is a receiver that fails with a status until it is over.
type outage struct {
	*receiver
	over atomic.Bool
}

func newOutage(t *testing.T, status int, retryAfter string) *outage {
	o := &outage{}
	o.receiver = receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if o.over.Load() {
			return
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	})
	return o
}

// TestRetryAfterHoldsForAll has a receiver ask for an hour, with much waiting
// for it: it gets that hour.
func TestRetryAfterHoldsForAll(t *testing.T) {
	o := newOutage(t, http.StatusServiceUnavailable, "3600")
	b := newBench(t)
	w := b.webhook(o.URL)
	b.pings(w, 300)
	b.start(nil)
	eventually(t, func() bool { return o.count() > 0 })
	time.Sleep(2500 * time.Millisecond)
	if n := o.count(); n > 2 {
		t.Fatalf("%d requests came within the hour", n)
	}
	// All that was claimed was given back.
	if _, due, err := b.Claim(t.Context(), w.ID, 1000, 0); err != nil || len(due) != 300-o.count() {
		t.Errorf("%d are due, %v", len(due), err)
	}
	o.over.Store(true)
	failed := o.count()
	b.advance(time.Hour)
	eventually(t, func() bool { return o.count() >= 300 })
	b.advance(time.Hour)
	eventually(t, func() bool { return o.count() >= 300+failed })
}

// TestOutage has a receiver fail with much waiting for it: few deliveries lose a
// try, and when it is over all go out.
func TestOutage(t *testing.T) {
	o := newOutage(t, http.StatusInternalServerError, "")
	b := newBench(t)
	w := b.webhook(o.URL)
	ids := b.pings(w, 300)
	b.start(nil)
	eventually(t, func() bool { return o.count() >= 5 })
	time.Sleep(2 * time.Second)
	if n := o.count(); n > 8 {
		t.Fatalf("%d requests came in 2 s", n)
	}
	o.over.Store(true)
	b.advance(time.Minute)
	succeeded := func(id string) func() bool {
		return func() bool { return b.delivery(w, id).Status == ledger.DeliverySucceeded }
	}
	for _, id := range ids {
		eventually(t, succeeded(id))
	}
}

// TestPingDuringPause has somebody mend the receiver and ping it: nobody waits
// for the pause to end.
func TestPingDuringPause(t *testing.T) {
	o := newOutage(t, http.StatusServiceUnavailable, "3600")
	b := newBench(t)
	w := b.webhook(o.URL)
	b.start(nil)
	b.attempted(w, b.ping(w).ID, 1)
	began := time.Now()
	for range 20 {
		b.ping(w)
		time.Sleep(100 * time.Millisecond)
	}
	if n, most := o.count(), 2+int(time.Since(began)/time.Second); n > most {
		t.Errorf("%d requests came in %v", n, time.Since(began))
	}
	o.over.Store(true)
	before := time.Now()
	id := b.ping(w).ID
	eventually(t, func() bool { return b.delivery(w, id).Status == ledger.DeliverySucceeded })
	if took := time.Since(before); took > 3500*time.Millisecond {
		t.Errorf("the ping took %v", took)
	}
}

// TestChangeEndsPause has the webhook get another URL, which has not failed.
func TestChangeEndsPause(t *testing.T) {
	o, good := newOutage(t, http.StatusServiceUnavailable, "3600"), receive(t, nil)
	b := newBench(t)
	w := b.webhook(o.URL)
	b.pings(w, 10)
	b.start(nil)
	eventually(t, func() bool { return o.count() > 0 })
	_, err := b.ChangeWebhook(t.Context(), "acme", "api", w.ID, ledger.WebhookChange{URL: &good.URL})
	check(t, err)
	eventually(t, func() bool { return good.count() >= 8 })
}

// TestChangeWhileSending has the URL changed while much is claimed: what was
// not begun goes to the new one.
func TestChangeWhileSending(t *testing.T) {
	slow := func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }
	before, after := receive(t, slow), receive(t, slow)
	b := newBench(t)
	w := b.webhook(before.URL)
	b.pings(w, 2000)
	b.start(nil)
	eventually(t, func() bool { return before.count() > 200 })
	_, err := b.ChangeWebhook(t.Context(), "acme", "api", w.ID, ledger.WebhookChange{URL: &after.URL})
	check(t, err)
	sent := before.count()
	eventually(t, func() bool { return after.count() > 0 })
	if n := before.count(); n > sent+32 {
		t.Errorf("%d requests came to the old URL after the change", n-sent)
	}
	sent = before.count()
	eventually(t, func() bool { return before.count()+after.count() == 2000 })
	if n := before.count(); n > sent {
		t.Errorf("%d requests came to the old URL after those to the new one", n-sent)
	}
}

// TestTotalInFlight has more receivers that hang than there may be requests:
// others are sent to all the same, and those that hang take turns.
func TestTotalInFlight(t *testing.T) {
	var now, most atomic.Int64
	b := newBench(t)
	var hooks []ledger.Webhook
	var receivers []*receiver
	for range 12 {
		r := receive(t, func(_ http.ResponseWriter, q *http.Request) {
			now.Add(1)
			<-q.Context().Done()
			now.Add(-1)
		})
		w := b.webhook(r.URL)
		b.pings(w, 10)
		hooks, receivers = append(hooks, w), append(receivers, r)
	}
	// A receiver notices late that a request was given up, perhaps after the next
	// one has begun: what counts is how many hang for a while.
	stop := make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for {
			least := now.Load()
			for range 10 {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				least = min(least, now.Load())
			}
			most.Store(max(most.Load(), least))
		}
	})
	good := receive(t, nil)
	w := b.webhook(good.URL)
	d := dispatch.New(dispatch.Config{Outbox: b.Store, Guard: loopback(), TotalInFlight: 8,
		Timeout: 400 * time.Millisecond, Grace: time.Millisecond})
	run(t, d)
	b.attempted(w, b.ping(w).ID, 1) // perhaps after some that hang: nobody knows it yet
	for range 20 {
		before := time.Now()
		b.attempted(w, b.ping(w).ID, 1)
		if took := time.Since(before); took > 300*time.Millisecond {
			t.Errorf("a healthy receiver waited %v", took)
		}
	}
	for i := range hooks {
		eventually(t, func() bool { return receivers[i].count() > 1 })
	}
	close(stop)
	sampling.Wait()
	if n := most.Load(); n > 4 || n == 0 {
		t.Errorf("%d requests at once hung, want at most 4 and some", n)
	}
}

// TestShortage has no file descriptors left for a while, which is nothing that
// a receiver has done.
func TestShortage(t *testing.T) {
	b := newBench(t)
	w := b.webhook("https://ci.example.com")
	ids := b.pings(w, 20)
	d := dispatch.New(dispatch.Config{Outbox: b.Store})
	var dials atomic.Int64
	d.SetTransport(roundTrip(func(q *http.Request) (*http.Response, error) {
		if dials.Add(1) <= 2 {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: q}, nil
	}))
	run(t, d)
	for _, id := range ids {
		if got := b.attempted(w, id, 1); got.Status != ledger.DeliverySucceeded || got.Attempts != 1 {
			t.Errorf("%s after %d attempts: %s", got.Status, got.Attempts, got.LastError)
		}
	}
	if got, err := b.Webhook(t.Context(), "acme", "api", w.ID); err != nil || got.FailingSince != 0 {
		t.Errorf("the webhook is %+v, %v", got, err)
	}
}
