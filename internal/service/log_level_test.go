package service

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// startWithLog starts a service with a log of the level warn and the given address of the metrics.
func startWithLog(t *testing.T, listen string) (*Instance, *testenv.Buffer) {
	t.Helper()
	s := config.Default()
	s.Listen, s.Metrics.Listen = "127.0.0.1:0", listen
	s.Database = config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	s.Log.Level = "warn"
	lines := new(testenv.Buffer)
	log := OpenLog(lines, s.Log)
	t.Cleanup(log.Close)
	v, err := Start(t.Context(), s, log)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := v.Stop(0, time.Second); err != nil {
			t.Error(err)
		}
	})
	return v, lines
}

// askLevel sends a request about the log level to a listener, and returns status and body.
func askLevel(t *testing.T, listener, method, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, listener+"/loglevel", strings.NewReader(body))
	must.OK(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return send(t, r)
}

// waitForLine waits until the log has a line with all texts.
func waitForLine(t *testing.T, log *testenv.Buffer, texts ...string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for line := range strings.Lines(log.String()) {
			missing := 0
			for _, text := range texts {
				if !strings.Contains(line, text) {
					missing++
				}
			}
			if missing == 0 {
				return
			}
		}
	}
	t.Fatalf("no line of the log has all of %q:\n%s", texts, log.String())
}

func TestLogLevelOfARunningService(t *testing.T) {
	v, log := startWithLog(t, "127.0.0.1:0")
	private := strings.TrimSuffix(v.Metrics, "/metrics")
	if status, body := askLevel(t, private, "GET", ""); status != http.StatusOK || body != `{"level":"warn"}`+"\n" {
		t.Errorf("got %d %q", status, body)
	}
	page(t, v.URL+"/healthz?before")

	// Each change is logged, also one to or from a level that hides it.
	for _, change := range [][2]string{{"warn", "debug"}, {"debug", "error"}, {"error", "debug"}} {
		from, to := change[0], change[1]
		status, body := askLevel(t, private, "PUT", `{"level":"`+to+`"}`)
		if status != http.StatusOK || body != `{"level":"`+to+`"}`+"\n" {
			t.Errorf("%s: got %d %q", to, status, body)
		}
		waitForLine(t, log, `msg="log level changed"`, "from="+from, "to="+to, "remote=127.0.0.1:")
	}
	page(t, v.URL+"/readyz")
	waitForLine(t, log, "path=/readyz")
	if strings.Contains(log.String(), "path=/healthz") {
		t.Errorf("a request before the change is logged:\n%s", log.String())
	}
}

// Refused requests change nothing.
func TestLogLevelIsRefused(t *testing.T) {
	v, _ := startWithLog(t, "127.0.0.1:0")
	private := strings.TrimSuffix(v.Metrics, "/metrics")
	const right, levels = `{"level":"debug"}`, "is not a log level (use info, debug, warn or error)"
	for name, test := range map[string]struct {
		method, body string
		header       []string
		status       int
		response     string // part of it
	}{
		"unknown level":    {"PUT", `{"level":"loud"}`, nil, 400, `level: "loud" ` + levels},
		"no level":         {"PUT", `{}`, nil, 400, `level: "" ` + levels},
		"wrong type":       {"PUT", `{"level":1}`, nil, 400, "level"},
		"unknown field":    {"PUT", `{"level":"debug","for":"1h"}`, nil, 400, "for"},
		"no JSON":          {"PUT", `debug`, nil, 400, "invalid JSON"},
		"empty":            {"PUT", ``, nil, 400, "unexpected end of JSON"},
		"large":            {"PUT", right + strings.Repeat(" ", 1024), nil, 413, "at most 1024 bytes"},
		"other method":     {"POST", right, nil, 405, ""},
		"another site":     {"PUT", right, []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		"another origin":   {"PUT", right, []string{"Origin", "https://evil.example"}, 403, ""},
		"a site next door": {"PUT", right, []string{"Sec-Fetch-Site", "same-site"}, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := askLevel(t, private, test.method, test.body, test.header...)
			if status != test.status || !strings.Contains(body, test.response) {
				t.Errorf("got %d %q, want %d %q", status, body, test.status, test.response)
			}
			if _, body := askLevel(t, private, "GET", ""); body != `{"level":"warn"}`+"\n" {
				t.Errorf("the level is %s", body)
			}
		})
	}
}

// The listener of the API never has the log level, whether it has the metrics or not.
func TestLogLevelIsPrivate(t *testing.T) {
	for _, listen := range []string{"", "127.0.0.1:0", config.MetricsOff} {
		v, log := startWithLog(t, listen)
		for _, method := range []string{"GET", "PUT"} {
			status, body := askLevel(t, v.URL, method, `{"level":"debug"}`)
			if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
				t.Errorf("metrics.listen %q: %s got %d %.100q", listen, method, status, body)
			}
		}
		page(t, v.URL+"/healthz")
		if text := log.String(); strings.Contains(text, "log level changed") || strings.Contains(text, "path=/healthz") {
			t.Errorf("metrics.listen %q: the level was changed:\n%s", listen, text)
		}
	}
}
