package dispatch_test

import (
	"bytes"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestRetries checks that a failing receiver gets as many attempts as the schedule has,
// with the same event signed again each time.
func TestRetries(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	fails.Store(true)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if fails.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	f := newFixture(t)
	w := f.webhook(r.URL)
	id := f.ping(w).ID
	schedule := []time.Duration{time.Minute, time.Hour}
	f.start(func(c *dispatch.Config) { c.Schedule = schedule })

	for i, wait := range schedule {
		d := f.attempted(w, id, i+1)
		in := d.NextAttemptAt.Sub(d.History[i].At)
		if d.Status != outbound.DeliveryPending || in < wait*8/10 || in > wait*12/10+time.Second {
			t.Fatalf("after %d attempts: %s, next attempt in %v", i+1, d.Status, in)
		}
		f.advance(wait * 13 / 10)
	}
	if d := f.attempted(w, id, 3); d.Status != outbound.DeliveryFailed || d.NextAttemptAt != 0 {
		t.Errorf("after the last attempt: %s, next attempt at %v", d.Status, d.NextAttemptAt)
	}

	fails.Store(false)
	_, err := f.Redeliver(t.Context(), "acme", "api", w.ID, id)
	must.OK(t, err)
	if d := f.attempted(w, id, 4); d.Status != outbound.DeliverySucceeded || d.History[3].Number != 4 {
		t.Errorf("after the redelivery: %s", d.Status)
	}

	got := r.all()
	for _, g := range got[1:] {
		if !bytes.Equal(g.body, got[0].body) || g.header.Get("webhook-id") != got[0].header.Get("webhook-id") {
			t.Error("an attempt sent another body or id")
		}
		if g.header.Get("X-Ledger-Signature") == got[0].header.Get("X-Ledger-Signature") {
			t.Error("an attempt was not signed again")
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	f := newFixture(t)
	w := f.webhook(r.URL)
	id := f.ping(w).ID
	f.start(nil)
	d := f.attempted(w, id, 1)
	if in := d.NextAttemptAt.Sub(d.History[0].At); in < 10*time.Minute || in > 12*time.Minute+time.Second {
		t.Errorf("next attempt in %v, want 10 to 12 minutes", in)
	}
}

// TestGone checks that a 410 response disables the webhook. Its pending deliveries
// stay, and are sent when it is activated again.
func TestGone(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	gone.Store(true)
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusGone)
		}
	})
	f := newFixture(t)
	w := f.webhook(r.URL)
	ids := f.pings(w, 30)
	f.start(func(c *dispatch.Config) { c.InFlight = 2 })
	get := func() outbound.Webhook {
		got, err := f.Webhook(t.Context(), "acme", "api", w.ID)
		must.OK(t, err)
		return got
	}

	eventually(t, func() bool { return !get().Active })
	if got := get(); got.DisabledReason != "the receiver returned 410 Gone" {
		t.Errorf("DisabledReason = %q", got.DisabledReason)
	}
	time.Sleep(50 * time.Millisecond)
	refused := r.count()
	if refused > 2 {
		t.Errorf("%d requests, want at most two, at once", refused)
	}

	gone.Store(false)
	active := true
	_, err := f.ChangeWebhook(t.Context(), "acme", "api", w.ID, outbound.WebhookChange{Active: &active})
	must.OK(t, err)
	eventually(t, func() bool { return r.count() == 30 })
	failed := 0
	for _, id := range ids {
		if d := f.attempted(w, id, 1); d.Status == outbound.DeliveryFailed {
			failed++
		}
	}
	if failed != refused {
		t.Errorf("%d deliveries failed, want the %d that got a 410", failed, refused)
	}
}

// TestLimitAfterFailure checks that a failing receiver gets one request at a time until
// it succeeds.
func TestLimitAfterFailure(t *testing.T) {
	t.Parallel()
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

	f := newFixture(t)
	w := f.webhook(r.URL)
	f.pings(w, 40)
	f.start(nil)
	eventually(t, func() bool { return served.Load() == 6 && now.Load() == 0 })
	if most.Load() != 1 {
		t.Errorf("%d requests at once to a failing receiver, want 1", most.Load())
	}

	fails.Store(false)
	f.pings(w, 200)
	f.advance(time.Minute) // makes the retries due
	eventually(t, func() bool { return served.Load() == 246 })
	if m := most.Load(); m < 6 || m > 8 {
		t.Errorf("at most %d requests at once to a healthy receiver, want 6 to 8", m)
	}
}

// TestFaultyWebhooksDoNotDelayOthers checks that receivers that hang, fail and drip do
// not slow down the deliveries to a healthy one.
func TestFaultyWebhooksDoNotDelayOthers(t *testing.T) {
	f := newFixture(t)
	for _, handler := range []http.HandlerFunc{hang, drip(200), drip(500), func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
	}} {
		r := newReceiver(handler)
		r.Start()
		t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
		f.pings(f.webhook(r.URL), 50)
	}

	good := receive(t, nil)
	w := f.webhook(good.URL)
	stop := f.start(func(c *dispatch.Config) { c.Grace = time.Millisecond })
	var took []time.Duration
	for i := range 100 {
		start := time.Now()
		f.ping(w)
		eventually(t, func() bool { return good.count() == i+1 })
		took = append(took, time.Since(start))
	}
	stop()
	slices.Sort(took)
	if took[95] > 250*time.Millisecond {
		t.Errorf("deliveries took %v, %v, %v (p50, p95, p99), want p95 up to 250ms", took[50], took[95], took[99])
	}
}

// TestNoWakeIsLost queues deliveries just when the endpoint is about to end. Each must be
// sent at once, not after the next poll.
func TestNoWakeIsLost(t *testing.T) {
	arrived := make(chan struct{}, 1)
	r := receive(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} })
	f := newFixture(t)
	w := f.webhook(r.URL)
	f.start(nil)
	late := 0
	for range 300 {
		start := time.Now()
		f.ping(w)
		<-arrived
		if time.Since(start) > 500*time.Millisecond {
			late++
		}
	}
	if late > 1 { // allow for one hiccup of the machine
		t.Errorf("%d of 300 deliveries were late", late)
	}
}
