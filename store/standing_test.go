package store_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// Nothing is noted of when the evidence of a deployed commit expires that does not run.
func TestHistoryDoesNotExpire(t *testing.T) {
	l := newTimeline(t)
	contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"24h"},
{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
	must.OK(t, err)
	_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 2, "host")
	must.OK(t, err)
	wantExpiring := func(when string, want int) {
		t.Helper()
		if got := l.rows("SELECT count(*) FROM commits WHERE expires > 0"); got != want {
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

// The same is so of the standing of what runs: a contract that becomes active while the clock is ahead
// finds its evidence expired, until the right clock is accepted.
func TestFaultStandingUnderAPolicyOfAWrongTime(t *testing.T) {
	l := newTimeline(t)
	setPolicy := func(maxAge string) {
		t.Helper()
		contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"` + maxAge + `},
{"state":"DEPLOYED","predicate":"deploy:prod"}]}`))
		must.OK(t, err)
		_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		must.OK(t, err)
	}
	wantStanding := func(want ledger.State) {
		t.Helper()
		if got := ledger.State(l.rows("SELECT standing FROM commits WHERE state = 4")); got != want {
			t.Errorf("the stored standing is %s, want %s", got, want)
		}
	}

	setPolicy("")
	l.attest(1, "test:go")
	l.attest(1, "deploy:prod")
	l.wantState(1, ledger.Deployed)
	wantStanding(ledger.Promotable)

	l.ahead(40*day, func() {
		setPolicy(`,"max_age":"720h"`)
		l.settle()
		wantStanding(ledger.Validating)
	})
	wantStanding(ledger.Promotable)
}
