package dispatch_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// BenchmarkDispatch measures deliveries that are already queued, to receivers in the
// same process that respond at once.
func BenchmarkDispatch(b *testing.B) {
	for _, webhooks := range []int{1, 20} {
		b.Run(fmt.Sprint(webhooks), func(b *testing.B) {
			f := newFixture(b)
			var got atomic.Int64
			r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				got.Add(1)
				w.WriteHeader(http.StatusNoContent)
			}))
			b.Cleanup(r.Close)
			var hooks []ledger.Webhook
			for range webhooks {
				hooks = append(hooks, f.webhook(r.URL))
			}
			total := int64(0)
			for _, w := range hooks {
				n := max(1, b.N/webhooks)
				f.pings(w, n)
				total += int64(n)
			}

			b.ResetTimer()
			stop := f.start(nil)
			for got.Load() < total {
				time.Sleep(time.Millisecond)
			}
			stop() // returns when all outcomes are recorded
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}

// BenchmarkFlakyReceiver measures queued deliveries to a receiver that takes 5 ms, and
// fails every 20th time.
func BenchmarkFlakyReceiver(b *testing.B) {
	f := newFixture(b)
	var got atomic.Int64
	r := receive(b, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(5 * time.Millisecond)
		if got.Add(1)%20 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	f.pings(f.webhook(r.URL), b.N)

	b.ResetTimer()
	stop := f.start(nil)
	for got.Load() < int64(b.N) {
		time.Sleep(time.Millisecond)
	}
	stop()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "attempts/s")
}

// BenchmarkLatency measures the time from queueing a delivery to its arrival, for one
// delivery at a time.
func BenchmarkLatency(b *testing.B) {
	f := newFixture(b)
	arrived := make(chan time.Time, 1)
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- time.Now() }))
	b.Cleanup(r.Close)
	w := f.webhook(r.URL)
	f.start(nil)
	var took []time.Duration
	for b.Loop() {
		f.ping(w)
		queued := time.Now()
		took = append(took, (<-arrived).Sub(queued))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
