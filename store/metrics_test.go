package store_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/metrics"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestMetrics opens three violations, and closes one of them.
func TestMetrics(t *testing.T) {
	db := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	t.Cleanup(func() { db.Close() })
	contract, err := policy.Parse([]byte(
		`{"requirements":[{"state":"DEPLOYED","predicate":"deploy:*","signers":["cn=cd"]}]}`))
	must.OK(t, err)
	for _, org := range []string{"acme", "umbrella"} {
		_, err = db.CreateOrg(t.Context(), org)
		must.OK(t, err)
		_, err = db.CreateRepo(t.Context(), org, ledger.NewRepo{Name: "api"}, "host")
		must.OK(t, err)
	}
	_, err = db.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
	must.OK(t, err)
	must.OK(t, db.Settle(t.Context()))

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.New(db))
	wantMetrics(t, registry, "")
	deploy(t, db, 1, "deploy:prod", "mallory")
	deploy(t, db, 2, "deploy:eu", "mallory")
	deploy(t, db, 3, "deploy:us", "mallory")
	deploy(t, db, 3, "deploy:us", "cd")
	wantMetrics(t, registry, `
# HELP ledgerd_violations_open Violations that nothing has closed yet.
# TYPE ledgerd_violations_open gauge
ledgerd_violations_open{org="acme"} 2
# HELP ledgerd_violations_opened_total Deployments that did not count when they were recorded.
# TYPE ledgerd_violations_opened_total counter
ledgerd_violations_opened_total{org="acme"} 3
`)
}

func wantMetrics(t *testing.T, registry *prometheus.Registry, want string) {
	t.Helper()
	problems, err := testutil.GatherAndLint(registry)
	must.OK(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// deploy records a passed deployment of commit n.
func deploy(t *testing.T, db *store.Store, n int, predicate, signer string) {
	t.Helper()
	payload := fmt.Appendf(nil, "%d %s %s", n, predicate, signer)
	a := &attestation.Attestation{
		Outcome:       attestation.Outcome{Predicate: predicate, Result: ledger.Result{Status: ledger.Pass}},
		Commit:        fmt.Sprintf("%040x", n),
		PredicateType: attestation.ResultPredicateType,
		Signer: identity.Signer{DN: identity.DN{CN: signer, OU: "x", O: "acme"}, Identity: "idn_x",
			Key: sha256.Sum256([]byte(signer))},
		Payload: payload, PayloadDigest: sha256.Sum256(payload),
		Envelope: []byte(`{"payload":"` + base64.StdEncoding.EncodeToString(payload) + `"}`),
	}
	_, version, err := db.Keyring(t.Context(), "acme")
	must.OK(t, err)
	_, _, err = db.Record(t.Context(), "acme", "api", a, version)
	must.OK(t, err)
}
