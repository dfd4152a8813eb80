package dispatch_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

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
