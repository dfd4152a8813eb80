package store_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Nothing is noted of when the evidence of a deployed commit expires that does not run.
func TestHistoryDoesNotExpire(t *testing.T) {
	l := newTimeline(t)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"24h"},
{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
	check(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 2, "host")
	check(t, err)
	db, err := sql.Open("sqlite", filepath.Clean(l.path))
	check(t, err)
	defer db.Close()
	wantExpiring := func(when string, want int) {
		t.Helper()
		var got int
		check(t, db.QueryRow("SELECT count(*) FROM commits WHERE expires > 0").Scan(&got))
		if got != want {
			t.Errorf("%s: %d commits expire, want %d", when, got, want)
		}
	}

	for n := range 2 {
		l.attest(n, "test:go")
		l.attest(n, "deploy:prod")
		l.wantState(n, ledger.Deployed)
		wantExpiring("after a deployment", 1)
	}
	l.attest(0, "test:go")
	wantExpiring("after a test of what does not run", 1)
	l.attest(0, "deploy:prod")
	wantExpiring("when the first runs again", 1)
	l.settle()
	wantExpiring("after the background", 1)
}
