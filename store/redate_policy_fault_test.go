package store_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A contract that becomes active while the clock is 40 days ahead finds all earlier
// evidence expired. When the clock is put right, the evidence counts under it.
func TestFaultPolicyOfAWrongTimeIsEvaluatedAgain(t *testing.T) {
	l := newTimeline(t)
	setPolicy := func(text string) {
		t.Helper()
		contract, err := policy.Parse([]byte(text))
		check(t, err)
		_, err = l.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		check(t, err)
	}
	setPolicy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`)
	l.attest(1, "test:go")
	l.settle()
	l.wantState(1, ledger.Promotable)

	l.jump(40 * day)
	l.pass(2 * time.Minute)
	setPolicy(`{"requirements":[{"state":"ATTESTED","predicate":"test:*","max_age":"720h"}]}`)
	l.settle()
	l.wantState(1, ledger.Validating) // the evidence is expired
	l.jump(-40 * day)
	l.pass(2 * time.Minute)
	l.wantState(1, ledger.Promotable)
}
