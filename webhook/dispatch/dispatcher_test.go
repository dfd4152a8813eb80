package dispatch_test

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestRetries has a receiver that fails, with the clock under test: it is
// tried as often as the schedule says, and the same event signed afresh.
func TestRetries(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b := newBench(t)
	w := b.webhook(r.URL)
	id := b.ping(w).ID
	schedule := []time.Duration{time.Minute, time.Hour}
	b.start(func(c *dispatch.Config) { c.Schedule = schedule })
	for i, wait := range schedule {
		d := b.attempted(w, id, i+1)
		in := d.NextAttemptAt.Sub(d.History[i].At)
		if d.Status != ledger.DeliveryPending || in < wait*8/10 || in > wait*12/10+time.Second {
			t.Fatalf("after %d attempts it is %s, to be tried in %v", i+1, d.Status, in)
		}
		b.advance(wait * 13 / 10)
	}
	if d := b.attempted(w, id, 3); d.Status != ledger.DeliveryFailed || d.NextAttemptAt != 0 {
		t.Errorf("at the end it is %s, to be tried at %v", d.Status, d.NextAttemptAt)
	}
	fails.Store(false)
	_, err := b.Redeliver(t.Context(), "acme", "api", w.ID, id)
	check(t, err)
	if d := b.attempted(w, id, 4); d.Status != ledger.DeliverySucceeded || d.History[3].Number != 4 {
		t.Errorf("redelivered, it is %s", d.Status)
	}
	got := r.all()
	for _, g := range got[1:] {
		if !bytes.Equal(g.body, got[0].body) || g.header.Get("webhook-id") != got[0].header.Get("webhook-id") {
			t.Error("an attempt has sent something else")
		}
		if g.header.Get("X-Ledger-Signature") == got[0].header.Get("X-Ledger-Signature") {
			t.Error("an attempt has not been signed afresh")
		}
	}
}

func TestRetryAfter(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	b := newBench(t)
	w := b.webhook(r.URL)
	id := b.ping(w).ID
	b.start(nil)
	d := b.attempted(w, id, 1)
	if in := d.NextAttemptAt.Sub(d.History[0].At); in < 10*time.Minute || in > 12*time.Minute+time.Second {
		t.Errorf("it is tried again in %v", in)
	}
}

// TestGone has a receiver that wants no more: the webhook becomes inactive,
// what waits stays, and goes out when the webhook is active again.
func TestGone(t *testing.T) {
	var gone atomic.Bool
	gone.Store(true)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	b := newBench(t)
	w := b.webhook(r.URL)
	ids := b.pings(w, 30)
	b.start(func(c *dispatch.Config) { c.InFlight = 2 })
	get := func() ledger.Webhook {
		got, err := b.Webhook(t.Context(), "acme", "api", w.ID)
		check(t, err)
		return got
	}
	eventually(t, func() bool { return !get().Active })
	if got := get(); got.DisabledReason != "the receiver returned 410 Gone" {
		t.Errorf("the reason is %q", got.DisabledReason)
	}
	time.Sleep(50 * time.Millisecond)
	asked := r.count()
	if asked > 2 {
		t.Errorf("%d requests were made, with two at once", asked)
	}
	gone.Store(false)
	active := true
	_, err := b.ChangeWebhook(t.Context(), "acme", "api", w.ID, ledger.WebhookChange{Active: &active})
	check(t, err)
	eventually(t, func() bool { return r.count() == 30 })
	failed := 0
	for _, id := range ids {
		if d := b.attempted(w, id, 1); d.Status == ledger.DeliveryFailed {
			failed++
		}
	}
	if failed != asked {
		t.Errorf("%d deliveries have failed of the %d that were answered 410", failed, asked)
	}
}

// TestFewerAtOnceAfterFailure has a receiver that fails: it gets one request
// at a time, until it does not.
func TestFewerAtOnceAfterFailure(t *testing.T) {
	var fails atomic.Bool
	var now, most, served atomic.Int64
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		served.Add(1)
		most.Store(max(most.Load(), n))
		time.Sleep(10 * time.Millisecond)
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	fails.Store(true)
	b := newBench(t)
	w := b.webhook(r.URL)
	b.pings(w, 40)
	b.start(nil)
	eventually(t, func() bool { return served.Load() == 6 && now.Load() == 0 })
	if most.Load() != 1 {
		t.Errorf("%d requests at once went to a receiver that fails", most.Load())
	}
	fails.Store(false)
	b.pings(w, 200)
	b.advance(time.Minute) // for those that have failed
	eventually(t, func() bool { return served.Load() == 246 })
	if m := most.Load(); m < 6 || m > 8 {
		t.Errorf("at most %d requests at once went to it later", m)
	}
}

// TestBadNeighbours has endpoints that hang, fail and drip beside one that
// does not, which notices nothing.
func TestBadNeighbours(t *testing.T) {
	b := newBench(t)
	for _, answer := range []http.HandlerFunc{hang, drip(200), drip(500), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
	}} {
		r := newReceiver(answer)
		r.Start()
		t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
		b.pings(b.webhook(r.URL), 50)
	}
	good := receive(t, nil)
	w := b.webhook(good.URL)
	stop := b.start(func(c *dispatch.Config) { c.Grace = time.Millisecond })
	var took []time.Duration
	for i := range 100 {
		start := time.Now()
		b.ping(w)
		eventually(t, func() bool { return good.count() == i+1 })
		took = append(took, time.Since(start))
	}
	stop()
	slices.Sort(took)
	if took[95] > 250*time.Millisecond {
		t.Errorf("deliveries took %v, %v, %v (half, 95 %%, all)", took[50], took[95], took[99])
	}
}

// TestNoWakeIsLost queues deliveries just when the endpoint is about to end:
// each has to go at once, not when the dispatcher looks by itself.
func TestNoWakeIsLost(t *testing.T) {
	arrived := make(chan struct{}, 1)
	r := receive(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
	b := newBench(t)
	w := b.webhook(r.URL)
	b.start(nil)
	late := 0
	for range 300 {
		start := time.Now()
		b.ping(w)
		<-arrived
		if time.Since(start) > 500*time.Millisecond {
			late++
		}
	}
	if late > 1 { // one may be the machine's fault
		t.Errorf("%d deliveries of 300 have waited", late)
	}
}
