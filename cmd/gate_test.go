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
	"github.com/ledgerd/ledgerd/ledger/policy"
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

// What the gate of an environment would say is noted once the gate has answered. If it cannot be asked, the answer
// stays as it is.
func TestGateNotesDeliveries(t *testing.T) {
	db := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	defer db.Close()
	sha := strings.Repeat("a1", 20)
	must.Get(db.CreateOrg(t.Context(), "acme"))(t)
	must.Get(db.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host"))(t)
	contract := must.Get(policy.Parse([]byte(`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:*"},
		{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}]}`)))(t)
	must.Get(db.SetPolicy(t.Context(), "acme", "api", contract, 0, "host"))(t)
	_, _, err := db.Register(t.Context(), "acme", "api", sha, ledger.Registration{})
	must.OK(t, err)
	var refuses atomic.Bool
	host := server.New(server.Config{Store: db}).Host()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() && r.URL.Query().Has("env") {
			http.Error(w, "too slow", http.StatusInternalServerError)
			return
		}
		host.ServeHTTP(w, r)
	}))
	defer s.Close()

	for name, test := range map[string]struct {
		refuses       bool
		state, stderr string
		status        int
	}{
		"open":            {false, "DRAFT", "NOTE: a deployment to prod would ship 1 commit that is not covered", 0},
		"shut":            {false, "DEPLOYED", "NOTE: a deployment to prod would ship", cli.ExitNotReached},
		"open, no answer": {true, "DRAFT", "", 0},
		"shut, no answer": {true, "DEPLOYED", "", cli.ExitNotReached},
	} {
		refuses.Store(test.refuses)
		var stdout, stderr bytes.Buffer
		args := []string{"gate", "acme/api", "--commit", sha, "--state", test.state, "--server", s.URL,
			"--token", "ldg_secret"}
		status := Main(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
		if status != test.status || !strings.HasPrefix(stderr.String(), test.stderr) ||
			test.stderr == "" && stderr.Len() > 0 {
			t.Errorf("%s: exit status %d, want %d with %q\n%s%s", name, status, test.status, test.stderr, &stdout, &stderr)
		}
	}
}
