package dispatch_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
	"github.com/ledgerd/ledgerd/webhook/dispatch/metrics"
)

// TestMetrics makes two deliveries, one of which fails.
func TestMetrics(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	f := newFixture(t)
	for _, path := range []string{"/good", "/bad"} {
		f.ping(f.webhook(server.URL + path))
	}
	d := dispatch.New(dispatch.Config{Outbox: f.Store, Guard: loopback()})
	stop := run(t, d)
	eventually(t, func() bool { return d.Stats().Seconds.Count >= 2 })
	stop()

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New(d))
	problems, err := testutil.GatherAndLint(registry)
	must.OK(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	err = testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP ledgerd_webhook_attempts_total Webhook delivery attempts, by result.
# TYPE ledgerd_webhook_attempts_total counter
ledgerd_webhook_attempts_total{result="client_error"} 0
ledgerd_webhook_attempts_total{result="gone"} 0
ledgerd_webhook_attempts_total{result="internal"} 0
ledgerd_webhook_attempts_total{result="network"} 0
ledgerd_webhook_attempts_total{result="redirect"} 0
ledgerd_webhook_attempts_total{result="refused"} 0
ledgerd_webhook_attempts_total{result="server_error"} 1
ledgerd_webhook_attempts_total{result="success"} 1
ledgerd_webhook_attempts_total{result="timeout"} 0
# HELP ledgerd_webhook_deliveries_total Finished webhook deliveries, by final status.
# TYPE ledgerd_webhook_deliveries_total counter
ledgerd_webhook_deliveries_total{status="failed"} 0
ledgerd_webhook_deliveries_total{status="succeeded"} 1
# HELP ledgerd_webhook_endpoints Webhooks with deliveries in progress.
# TYPE ledgerd_webhook_endpoints gauge
ledgerd_webhook_endpoints 0
# HELP ledgerd_webhook_in_flight Webhook requests that wait for a response.
# TYPE ledgerd_webhook_in_flight gauge
ledgerd_webhook_in_flight 0
# HELP ledgerd_webhook_unsettled Webhook delivery attempts whose outcome is not recorded yet.
# TYPE ledgerd_webhook_unsettled gauge
ledgerd_webhook_unsettled 0
`), "ledgerd_webhook_attempts_total", "ledgerd_webhook_deliveries_total", "ledgerd_webhook_endpoints",
		"ledgerd_webhook_in_flight", "ledgerd_webhook_unsettled")
	if err != nil {
		t.Error(err)
	}
}
