package metrics_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
	"github.com/ledgerd/ledgerd/webhook/dispatch/metrics"
)

// TestMetrics makes two deliveries, one of which fails.
func TestMetrics(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	db := open(t)
	for _, path := range []string{"/good", "/bad"} {
		n := ledger.NewWebhook{URL: receiver.URL + path}
		check(t, n.Check())
		w, err := db.CreateWebhook(t.Context(), "acme", "api", n, ledger.NewWebhookSecret())
		check(t, err)
		_, err = db.PingWebhook(t.Context(), "acme", "api", w.ID)
		check(t, err)
	}
	d := dispatch.New(dispatch.Config{
		Outbox: db, Guard: dispatch.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	for ctx.Err() == nil && d.Stats().Seconds.Count < 2 {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	<-ended

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New(d))
	problems, err := testutil.GatherAndLint(registry)
	check(t, err)
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

func open(t *testing.T) *store.Store {
	db, err := store.Open(t.Context(), storetest.NewFile(t), store.Options{})
	check(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
