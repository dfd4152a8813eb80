package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// prometheusConfig scrapes one server twice a second.
const prometheusConfig = `
global: { scrape_interval: 500ms, scrape_timeout: 500ms }
rule_files: [%q]
scrape_configs:
  - job_name: ledgerd
    static_configs: [{ targets: [%q] }]
`

// Prometheus scrapes a server, and promtool has nothing to say against its metrics.
func TestPrometheusScrapes(t *testing.T) {
	testenv.Need(t, "prometheus", "promtool")
	t.Parallel()
	o := newOrg(t)
	metrics := freeAddress(t)
	o.env = append(o.env, "LEDGERD_METRICS_LISTEN="+metrics)
	if !pgtest.OnPostgreSQL() { // which is backed up with its own tools
		o.env = append(o.env, "LEDGERD_BACKUP_FOLDER="+t.TempDir())
	}
	o.start()
	for range 10 {
		_, err := o.attest()
		must.OK(t, err)
	}

	response, err := http.Get("http://" + metrics + "/metrics")
	must.OK(t, err)
	defer response.Body.Close()
	lint := exec.Command("promtool", "check", "metrics")
	lint.Stdin = response.Body
	if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	dir, address := t.TempDir(), freeAddress(t)
	rules := must.Get(filepath.Abs("../deploy/prometheus/alerts.yaml"))(t)
	config := filepath.Join(dir, "prometheus.yaml")
	must.OK(t, os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, rules, metrics), 0o600))
	prometheus := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address)
	must.OK(t, prometheus.Start())
	t.Cleanup(func() {
		prometheus.Process.Kill()
		prometheus.Wait()
	})

	values := map[string]string{
		`up{job="ledgerd"}`: "1",
		`ledgerd_attestations_recorded_total{status="pass"}`:              "10",
		`ledgerd_http_requests_total{status="201"}`:                       "10",
		`count(ALERTS{alertname="LedgerdDown"}) or vector(0)`:             "0",
		`ledgerd_log_unsigned_events > bool 0`:                            "1",
		`histogram_quantile(0.9, ledgerd_write_seconds_bucket) < bool 60`: "1",
	}
	if !pgtest.OnPostgreSQL() {
		values[`ledgerd_backup_last_timestamp_seconds > bool 1.7e9`] = "1"
	}
	for query, want := range values {
		got := ""
		waitFor(t, query, 30*time.Second, func() bool {
			got = ask(address, query)
			return got == want
		})
	}
}

// ask returns the value of the only result of a query, or an empty string if the query finds nothing.
func ask(prometheus, query string) string {
	request, err := http.NewRequest(http.MethodGet, "http://"+prometheus+"/api/v1/query", http.NoBody)
	if err != nil {
		return ""
	}
	request.URL.RawQuery = "query=" + strings.NewReplacer(" ", "%20", "+", "%2B", "{", "%7B", "}", "%7D", `"`, "%22",
		">", "%3E", "<", "%3C").Replace(query)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}

	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Data.Result) != 1 {
		return ""
	}
	value, _ := answer.Data.Result[0].Value[1].(string)
	return value
}

// Each alert fires when it should, and not before.
func TestAlerts(t *testing.T) {
	testenv.Need(t, "promtool")
	test := exec.Command("promtool", "test", "rules", "alerts_test.yaml")
	test.Dir = "../deploy/prometheus"
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	rules := must.Read(t, "../deploy/prometheus/alerts.yaml")
	tests := must.Read(t, "../deploy/prometheus/alerts_test.yaml")
	for line := range strings.Lines(string(rules)) {
		if _, alert, ok := strings.Cut(strings.TrimSpace(line), "alert: "); ok {
			if strings.Count(string(tests), "alertname: "+alert) != 2 {
				t.Errorf("the alert %s is not tested", alert)
			}
		}
	}
}
