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

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// An outage is a receiver that responds with an error status until over is set.
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

// TestFaultNowAndThen has a receiver that fails every tenth time, while as many others
// hang as failing webhooks may have requests in flight. A single failure does not make it
// wait for those.
func TestFaultNowAndThen(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	flaky := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	var hung atomic.Int64
	hanging := receive(t, func(_ http.ResponseWriter, q *http.Request) {
		hung.Add(1)
		<-q.Context().Done()
	})

	f := newFixture(t)
	w := f.webhook(flaky.URL)
	f.start(func(c *dispatch.Config) {
		c.InFlight, c.TotalInFlight, c.Timeout, c.Grace = 1, 8, time.Hour, time.Millisecond
	})
	f.attempted(w, f.ping(w).ID, 1) // from now on it is known to work
	for range 12 {
		f.ping(f.webhook(hanging.URL))
	}
	eventually(t, func() bool { return hung.Load() == 4 })

	const n = 100
	f.pings(w, n)
	eventually(t, func() bool { return requests.Load() > n })
}

// TestRetryAfterPausesWebhook checks that none of many pending deliveries is sent for
// an hour after a receiver asks for a pause of an hour.
func TestRetryAfterPausesWebhook(t *testing.T) {
	t.Parallel()
	o := newOutage(t, http.StatusServiceUnavailable, "3600")
	f := newFixture(t)
	w := f.webhook(o.URL)
	f.pings(w, 300)
	f.start(nil)
	eventually(t, func() bool { return o.count() > 0 })

	time.Sleep(2500 * time.Millisecond)
	if n := o.count(); n > 2 {
		t.Fatalf("%d requests within the hour, want at most 2", n)
	}
	// The claimed deliveries were released.
	if _, due, err := f.Claim(t.Context(), w.ID, 1000, 0); err != nil || len(due) != 300-o.count() {
		t.Errorf("%d deliveries are due, %v", len(due), err)
	}
	o.over.Store(true)
	failed := o.count()
	f.advance(time.Hour)
	eventually(t, func() bool { return o.count() >= 300 })
	f.advance(time.Hour)
	eventually(t, func() bool { return o.count() >= 300+failed })
}

// TestOutage checks that of many pending deliveries only few lose an attempt while the
// receiver fails, and that all are sent after the outage.
func TestOutage(t *testing.T) {
	t.Parallel()
	o := newOutage(t, http.StatusInternalServerError, "")
	f := newFixture(t)
	w := f.webhook(o.URL)
	ids := f.pings(w, 300)
	f.start(nil)
	eventually(t, func() bool { return o.count() >= 5 })
	time.Sleep(2 * time.Second)
	if n := o.count(); n > 8 {
		t.Fatalf("%d requests in 2 s, want at most 8", n)
	}
	o.over.Store(true)
	f.advance(time.Minute)
	succeeded := func(id string) func() bool {
		return func() bool { return f.delivery(w, id).Status == outbound.DeliverySucceeded }
	}
	for _, id := range ids {
		eventually(t, succeeded(id))
	}
}

// TestPingDuringPause pings a receiver that was fixed: the ping does not wait for the end
// of the pause.
func TestPingDuringPause(t *testing.T) {
	o := newOutage(t, http.StatusServiceUnavailable, "3600")
	f := newFixture(t)
	w := f.webhook(o.URL)
	f.start(nil)
	f.attempted(w, f.ping(w).ID, 1)

	began := time.Now()
	for range 20 {
		f.ping(w)
		time.Sleep(100 * time.Millisecond)
	}
	if n, most := o.count(), 2+int(time.Since(began)/time.Second); n > most {
		t.Errorf("%d requests in %v, want at most %d", n, time.Since(began), most)
	}
	o.over.Store(true)
	before := time.Now()
	id := f.ping(w).ID
	eventually(t, func() bool { return f.delivery(w, id).Status == outbound.DeliverySucceeded })
	if took := time.Since(before); took > 3500*time.Millisecond {
		t.Errorf("the ping took %v", took)
	}
}

// TestChangeEndsPause changes the URL of a paused webhook.
func TestChangeEndsPause(t *testing.T) {
	t.Parallel()
	o, good := newOutage(t, http.StatusServiceUnavailable, "3600"), receive(t, nil)
	f := newFixture(t)
	w := f.webhook(o.URL)
	f.pings(w, 10)
	f.start(nil)
	eventually(t, func() bool { return o.count() > 0 })
	_, err := f.ChangeWebhook(t.Context(), "acme", "api", w.ID, outbound.WebhookChange{URL: &good.URL})
	must.OK(t, err)
	eventually(t, func() bool { return good.count() >= 8 })
}

// TestChangeWhileSending changes the URL while many deliveries are claimed: those not yet
// started go to the new URL.
func TestChangeWhileSending(t *testing.T) {
	t.Parallel()
	slow := func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) }
	before, after := receive(t, slow), receive(t, slow)
	f := newFixture(t)
	w := f.webhook(before.URL)
	f.pings(w, 2000)
	f.start(nil)
	eventually(t, func() bool { return before.count() > 200 })
	_, err := f.ChangeWebhook(t.Context(), "acme", "api", w.ID, outbound.WebhookChange{URL: &after.URL})
	must.OK(t, err)
	sent := before.count()
	eventually(t, func() bool { return after.count() > 0 })
	if n := before.count(); n > sent+32 {
		t.Errorf("%d requests to the old URL after the change", n-sent)
	}
	sent = before.count()
	eventually(t, func() bool { return before.count()+after.count() == 2000 })
	if n := before.count(); n > sent {
		t.Errorf("%d requests to the old URL after the first to the new one", n-sent)
	}
}

// TestTotalInFlight checks that with more hanging receivers than TotalInFlight, healthy
// ones still get their deliveries, and the hanging ones take turns.
func TestTotalInFlight(t *testing.T) {
	var now, most atomic.Int64
	f := newFixture(t)
	var hooks []outbound.Webhook
	var receivers []*receiver
	for range 12 {
		r := receive(t, func(_ http.ResponseWriter, q *http.Request) {
			now.Add(1)
			<-q.Context().Done()
			now.Add(-1)
		})
		w := f.webhook(r.URL)
		f.pings(w, 10)
		hooks, receivers = append(hooks, w), append(receivers, r)
	}

	// A receiver may notice a cancelled request only after the next one has begun. So
	// the test samples the number of requests that hang for a while.
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
	w := f.webhook(good.URL)
	d := dispatch.New(dispatch.Config{Outbox: f.Store, Guard: loopback(), TotalInFlight: 8,
		Timeout: 400 * time.Millisecond, Grace: time.Millisecond})
	run(t, d)
	f.attempted(w, f.ping(w).ID, 1) // may be slow: the others are not known to hang yet
	for range 20 {
		before := time.Now()
		f.attempted(w, f.ping(w).ID, 1)
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
		t.Errorf("%d requests hung at once, want 1 to 4", n)
	}
}

// TestShortage runs out of file descriptors for a while. That is not the receiver's
// fault, so it does not count as a failure.
func TestShortage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.webhook("https://ci.example.com")
	ids := f.pings(w, 20)
	d := dispatch.New(dispatch.Config{Outbox: f.Store})
	var dials atomic.Int64
	d.SetTransport(roundTrip(func(q *http.Request) (*http.Response, error) {
		if dials.Add(1) <= 2 {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		}
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: q}, nil
	}))

	run(t, d)
	for _, id := range ids {
		if got := f.attempted(w, id, 1); got.Status != outbound.DeliverySucceeded || got.Attempts != 1 {
			t.Errorf("%s after %d attempts: %s", got.Status, got.Attempts, got.LastError)
		}
	}
	if got, err := f.Webhook(t.Context(), "acme", "api", w.ID); err != nil || got.FailingSince != 0 {
		t.Errorf("webhook %+v, %v", got, err)
	}
}
