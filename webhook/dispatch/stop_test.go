package dispatch_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// TestStop stops the dispatcher after one success, while two requests are in flight and
// more deliveries are pending.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		what     string
		grace    time.Duration
		finished int
	}{
		{"requests finish in time", 5 * time.Second, 2},
		{"requests take too long", 50 * time.Millisecond, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			release := make(chan struct{})
			var served atomic.Int64
			r := receive(t, func(_ http.ResponseWriter, q *http.Request) {
				if served.Add(1) == 1 {
					time.Sleep(250 * time.Millisecond) // slow, so nothing is prefetched
					return
				}
				select {
				case <-release:
				case <-q.Context().Done():
				}
			})

			f := newFixture(t)
			w := f.webhook(r.URL)
			ids := f.pings(w, 20)
			stop := f.start(func(cfg *dispatch.Config) { cfg.Grace, cfg.InFlight = c.grace, 2 })
			eventually(t, func() bool { return r.count() == 3 })
			if _, rest, err := f.Claim(t.Context(), w.ID, 100, 0); err != nil || len(rest) != 17 {
				t.Errorf("%d deliveries are not claimed, %v, want 17: a slow endpoint prefetches", len(rest), err)
			}
			time.AfterFunc(300*time.Millisecond, func() { close(release) })

			before := time.Now()
			stop()
			if took := time.Since(before); took > time.Second || c.finished == 0 && took > 250*time.Millisecond {
				t.Errorf("stopping took %v", took)
			}

			succeeded := 0
			for _, id := range ids {
				if d := f.delivery(w, id); d.Status == outbound.DeliverySucceeded {
					succeeded++
				}
			}
			if succeeded != 1+c.finished {
				t.Errorf("%d deliveries succeeded, want %d", succeeded, 1+c.finished)
			}

			// Cancelled deliveries are still leased; the others are due.
			_, due, err := f.Claim(t.Context(), w.ID, 100, 0)
			must.OK(t, err)
			if len(due) != 17 {
				t.Errorf("%d deliveries are due, want 17", len(due))
			}
			f.advance(time.Minute)
			f.start(nil)
			for _, id := range ids {
				f.attempted(w, id, 1)
			}
		})
	}
}

// TestStopReleases stops a fast endpoint, which has prefetched deliveries.
func TestStopReleases(t *testing.T) {
	t.Parallel()
	r := receive(t, nil)
	f := newFixture(t)
	w := f.webhook(r.URL)
	f.pings(w, 2000)
	stop := f.start(nil)
	eventually(t, func() bool { return r.count() > 100 })
	stop()
	sent := r.count()
	_, due, err := f.Claim(t.Context(), w.ID, 5000, time.Minute)
	must.OK(t, err)
	if sent+len(due) != 2000 {
		t.Errorf("%d deliveries sent and %d due, want 2000 in all", sent, len(due))
	}
}
