package service

import (
	"context"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// startMetrics starts a service with an org, backups and the address of the metrics.
func startMetrics(t *testing.T, listen string) *Instance {
	t.Helper()
	s := config.Default()
	s.Listen, s.Metrics.Listen = "127.0.0.1:0", listen
	s.Database = config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.Backup.Folder = t.TempDir()
	v, err := Start(t.Context(), s, discardLog())
	must.OK(t, err)
	t.Cleanup(func() {
		if err := v.Stop(0, time.Second); err != nil {
			t.Error(err)
		}
	})

	host, err := v.Host()
	must.OK(t, err)
	if _, err := host.CreateOrg(context.WithoutCancel(t.Context()), ledger.NewOrg{Name: "secretive"}); err != nil {
		t.Fatal(err)
	}
	return v
}

// page returns the status and the body of a page.
func page(t *testing.T, url string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	return send(t, r)
}

// send sends a request, and returns the status and the body of the response.
func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.OK(t, err)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
}

func TestMetricsOnTheListenerOfTheAPINameNoOrg(t *testing.T) {
	v := startMetrics(t, "")
	if status, _ := page(t, v.URL+"/v1/orgs/secretive"); status != http.StatusUnauthorized {
		t.Errorf("a request without a token got the status %d", status)
	}
	page(t, v.URL+"/v1/orgs/secretive/nowhere")
	status, text := page(t, v.URL+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("got the status %d", status)
	}
	for _, want := range []string{
		`ledgerd_http_requests_total{method="GET",route="/v1/orgs/:org",status="401"} 1`,
		`ledgerd_http_requests_total{method="GET",route="none",status="404"} 1`,
		`ledgerd_http_errors_total{code="unauthenticated"} 1`,
		`ledgerd_http_request_seconds_count{method="GET",route="/v1/orgs/:org"} 1`,
		`ledgerd_write_batch_size_count `, `ledgerd_database_bytes `, `ledgerd_backup_failures_total 0`,
		`ledgerd_build_info{goversion="go`, `go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, "secretive") {
		t.Error("the metrics name an org")
	}
	if status, _ := page(t, v.URL+"/debug/pprof/"); status == http.StatusOK {
		t.Error("profiles are served on the listener of the API")
	}
}

func TestMetricsWithAListenerOfTheirOwn(t *testing.T) {
	v := startMetrics(t, "127.0.0.1:0")
	status, text := page(t, v.URL+"/metrics")
	if status == http.StatusOK && strings.Contains(text, "ledgerd_") {
		t.Error("the listener of the API has metrics, too")
	}
	status, text = page(t, v.Metrics)
	if status != http.StatusOK || !strings.Contains(text, "ledgerd_database_bytes ") {
		t.Errorf("got the status %d and %.200s", status, text)
	}
	profiles := strings.TrimSuffix(v.Metrics, "metrics") + "debug/pprof/"
	status, text = page(t, profiles+"goroutine?debug=1")
	if status != http.StatusOK || !strings.Contains(text, "goroutine profile") {
		t.Errorf("got the status %d and %.200s", status, text)
	}
	if status, _ := page(t, strings.TrimSuffix(v.Metrics, "metrics")+"v1/orgs"); status != http.StatusNotFound {
		t.Errorf("the API is served with the metrics: status %d", status)
	}
}

func TestMetricsAreOff(t *testing.T) {
	v := startMetrics(t, config.MetricsOff)
	status, text := page(t, v.URL+"/metrics")
	if status == http.StatusOK && strings.Contains(text, "ledgerd_") || v.Metrics != "" {
		t.Errorf("got the status %d, and the URL %q", status, v.Metrics)
	}
}

// metric is the name of a metric in a query, or in the documentation.
var metric = regexp.MustCompile(`ledgerd_[a-z_]*[a-z]`)

// TestNamedMetricsExist looks for the metrics that alerts, dashboard and documentation name, and
// for those that the documentation lacks.
func TestNamedMetricsExist(t *testing.T) {
	v := startMetrics(t, "")
	names := make(map[string]bool)
	for _, r := range []*prometheus.Registry{v.metrics.all, v.metrics.orgs} {
		descs := make(chan *prometheus.Desc, 1000)
		r.Describe(descs)
		close(descs)
		for d := range descs {
			if name := metric.FindString(d.String()); name != "" {
				names[name] = false
			}
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d metrics are described", len(names))
	}

	for _, file := range []string{
		"deploy/prometheus/alerts.yaml", "deploy/grafana/dashboard.json", "docs/operations.md", "docs/webhooks.md",
	} {
		text := must.Read(t, filepath.Join("../..", file))
		for _, named := range metric.FindAllString(string(text), -1) {
			name := named
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if base, ok := strings.CutSuffix(named, suffix); ok {
					name = base
				}
			}
			if _, ok := names[name]; !ok {
				t.Errorf("%s names %s, which does not exist", file, named)
			}
			if strings.HasSuffix(file, "operations.md") {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			t.Errorf("docs/operations.md lacks %s", name)
		}
	}
}
