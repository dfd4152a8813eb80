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

// BenchmarkDispatch measures deliveries that were queued before, to receivers
// in the same process that answer at once.
func BenchmarkDispatch(b *testing.B) {
	for _, webhooks := range []int{1, 20} {
		b.Run(fmt.Sprint(webhooks), func(b *testing.B) {
			bench := newBench(b)
			var got atomic.Int64
			r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				got.Add(1)
				w.WriteHeader(http.StatusNoContent)
			}))
			b.Cleanup(r.Close)
			var hooks []ledger.Webhook
			for range webhooks {
				hooks = append(hooks, bench.webhook(r.URL))
			}
			total := int64(0)
			for _, w := range hooks {
				n := max(1, b.N/webhooks)
				bench.pings(w, n)
				total += int64(n)
			}
			b.ResetTimer()
			stop := bench.start(nil)
			for got.Load() < total {
				time.Sleep(time.Millisecond)
			}
			stop() // all is written then
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}

// BenchmarkLatency measures one delivery at a time, from when it is queued to
// its arrival.
func BenchmarkLatency(b *testing.B) {
	bench := newBench(b)
	arrived := make(chan time.Time, 1)
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- time.Now() }))
	b.Cleanup(r.Close)
	w := bench.webhook(r.URL)
	bench.start(nil)
	var took []time.Duration
	for b.Loop() {
		bench.ping(w)
		queued := time.Now()
		took = append(took, (<-arrived).Sub(queued))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
