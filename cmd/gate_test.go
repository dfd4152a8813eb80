package cmd

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestGateRetries checks that gate --wait retries while the server is unavailable, and
// that gate without --wait fails.
func TestGateRetries(t *testing.T) {
	db := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	defer db.Close()
	sha := strings.Repeat("a1", 20)
	if _, err := db.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Register(t.Context(), "acme", "api", sha, ledger.Registration{}); err != nil {
		t.Fatal(err)
	}
	var failures atomic.Int32 // how many of the next requests fail
	host := server.New(server.Config{Store: db}).Host()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failures.Add(-1) >= 0 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		host.ServeHTTP(w, r)
	}))
	defer s.Close()

	for name, test := range map[string]struct {
		wait     string
		failures int32
		status   int
	}{
		"available":                    {"0s", 0, 0},
		"unavailable, no wait":         {"0s", 1, cli.ExitFailure},
		"unavailable for one request":  {"30s", 1, 0},
		"unavailable longer than wait": {"300ms", 100, cli.ExitFailure},
	} {
		failures.Store(test.failures)
		var stdout, stderr bytes.Buffer
		args := []string{"gate", "acme/api", "--commit", sha, "--state", "DRAFT", "--wait", test.wait, "--server", s.URL,
			"--token", "ldg_secret"}
		if status := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr); status != test.status {
			t.Errorf("%s: exit status %d, want %d\n%s%s", name, status, test.status, &stdout, &stderr)
		}
		if strings.Contains(stdout.String()+stderr.String(), "ldg_secret") {
			t.Errorf("%s: the output contains the token", name)
		}
	}
}
