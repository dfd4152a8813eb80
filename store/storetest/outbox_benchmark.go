package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// BenchmarkRecordWithWebhooks measures recording with webhooks, which insert a row
// into the outbox for each event and webhook.
func BenchmarkRecordWithWebhooks(b *testing.B, newDatabase New) {
	for _, webhooks := range []int{0, 3} {
		b.Run(fmt.Sprint(webhooks), func(b *testing.B) {
			fx := suite{newDatabase: newDatabase}.newFixture(b)
			for range webhooks {
				fx.webhook()
			}
			_, version, err := fx.Keyring(b.Context(), "acme")
			must.OK(b, err)
			var n atomic.Int64
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _, err := fx.Record(b.Context(), "acme", "api", unsigned(int(n.Add(1))), version)
					must.OK(b, err)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkOutbox measures claiming and settling deliveries in batches of 256.
func BenchmarkOutbox(b *testing.B, newDatabase New) {
	fx := suite{newDatabase: newDatabase}.newFixture(b)
	w := fx.webhook(ledger.EventAttestation)
	_, version, err := fx.Keyring(b.Context(), "acme")
	must.OK(b, err)
	for i := range 10_000 {
		_, _, err := fx.Record(b.Context(), "acme", "api", unsigned(i), version)
		must.OK(b, err)
	}

	headers := map[string][]string{"Content-Type": {"application/json"}, "X-ledger-Signature": {
		"t=1763629200, v1=4qK5x0eJmVq2rBf3yI4r1cQ1u0mXb1b2l9sX3QJw2vA="}, "User-Agent": {"ledgerd/0.1.0"}}
	done := 0
	for b.Loop() {
		due := fx.claim(w.ID, 256)
		if len(due) == 0 { // all have failed: queue them again
			b.StopTimer()
			_, err := fx.ReplayWebhook(b.Context(), "acme", "api", w.ID, 1)
			must.OK(b, err)
			b.StartTimer()
			continue
		}

		outcomes := make([]ledger.Outcome, len(due))
		for i, d := range due {
			outcomes[i] = ledger.Outcome{Webhook: w.ID, Delivery: d.ID, Status: ledger.DeliveryFailed, Tries: d.Tries,
				Lease: d.Lease, Attempt: ledger.Attempt{
					At: fx.Now(), DurationMS: 3, Request: ledger.AttemptRequest{URL: w.URL, Headers: headers},
					Response: ledger.AttemptResponse{Status: 204, Headers: headers},
				}}
		}
		must.OK(b, fx.RecordOutcomes(b.Context(), outcomes, 5*24*time.Hour))
		done += len(due)
	}
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "deliveries/s")
}
