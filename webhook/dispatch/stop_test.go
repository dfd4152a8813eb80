package dispatch_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestStop stops while two requests are under way and more wait, after one that
// has succeeded.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		what     string
		grace    time.Duration
		finished int
	}{
		{"they finish in time", 5 * time.Second, 2},
		{"they do not", 50 * time.Millisecond, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			release := make(chan struct{})
			var served atomic.Int64
			r := receive(t, func(_ http.ResponseWriter, q *http.Request) {
				if served.Add(1) == 1 {
					time.Sleep(250 * time.Millisecond) // it is a slow one
					return
				}
				select {
				case <-release:
				case <-q.Context().Done():
				}
			})
			b := newBench(t)
			w := b.webhook(r.URL)
			ids := b.pings(w, 20)
			stop := b.start(func(cfg *dispatch.Config) { cfg.Grace, cfg.InFlight = c.grace, 2 })
			eventually(t, func() bool { return r.count() == 3 })
			if _, rest, err := b.Claim(t.Context(), w.ID, 100, 0); err != nil || len(rest) != 17 {
				t.Errorf("%d deliveries are left for others, %v: a slow endpoint holds more than it sends", len(rest), err)
			}
			time.AfterFunc(300*time.Millisecond, func() { close(release) })
			before := time.Now()
			stop()
			if took := time.Since(before); took > time.Second || c.finished == 0 && took > 250*time.Millisecond {
				t.Errorf("it took %v to stop", took)
			}
			succeeded := 0
			for _, id := range ids {
				if d := b.delivery(w, id); d.Status == ledger.DeliverySucceeded {
					succeeded++
				}
			}
			if succeeded != 1+c.finished {
				t.Errorf("%d have succeeded, want %d", succeeded, 1+c.finished)
			}
			// What was cut off is leased still; all else is due.
			_, due, err := b.Claim(t.Context(), w.ID, 100, 0)
			check(t, err)
			if len(due) != 17 {
				t.Errorf("%d are due, want 17", len(due))
			}
			b.advance(time.Minute)
			b.start(nil)
			for _, id := range ids {
				b.attempted(w, id, 1)
			}
		})
	}
}

// TestStopGivesBack stops a quick endpoint, which has claimed ahead.
func TestStopGivesBack(t *testing.T) {
	r := receive(t, nil)
	b := newBench(t)
	w := b.webhook(r.URL)
	b.pings(w, 2000)
	stop := b.start(nil)
	eventually(t, func() bool { return r.count() > 100 })
	stop()
	sent := r.count()
	_, due, err := b.Claim(t.Context(), w.ID, 5000, time.Minute)
	check(t, err)
	if sent+len(due) != 2000 {
		t.Errorf("%d were sent and %d are due, of 2000", sent, len(due))
	}
}
