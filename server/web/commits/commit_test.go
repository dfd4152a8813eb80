package commits

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A failure marks the states that it keeps the commit from, but none that is reached.
func TestSteps(t *testing.T) {
	failed := func(state ledger.State) ledger.RequirementStatus {
		return ledger.RequirementStatus{State: state, Applies: true, FailedBy: []string{"cn=ci"}}
	}
	excused, excluded, met := failed(ledger.Promotable), failed(ledger.Promotable), failed(ledger.Promotable)
	excused.Exception, excluded.Applies, met.Met = &ledger.ExceptionStatus{}, false, true

	for name, test := range map[string]struct {
		state        ledger.State
		requirements []ledger.RequirementStatus
		want         string
	}{
		"nothing failed":  {ledger.Attested, []ledger.RequirementStatus{{State: ledger.Promotable, Applies: true}}, "[]"},
		"a failure":       {ledger.Attested, []ledger.RequirementStatus{failed(ledger.Promotable)}, "[PROMOTABLE]"},
		"of a later step": {ledger.Draft, []ledger.RequirementStatus{failed(ledger.Deployed)}, "[DEPLOYED]"},
		"after deployment": {ledger.Deployed,
			[]ledger.RequirementStatus{failed(ledger.Attested), failed(ledger.Deployed)}, "[]"},
		"excused":        {ledger.Attested, []ledger.RequirementStatus{excused}, "[]"},
		"does not apply": {ledger.Attested, []ledger.RequirementStatus{excluded}, "[]"},
		"met anyway":     {ledger.Attested, []ledger.RequirementStatus{met}, "[]"},
	} {
		var c ledger.Commit
		c.State, c.Requirements = test.state, test.requirements
		var failing []ledger.State
		for _, s := range stepsOf(c) {
			if s.Failing {
				failing = append(failing, s.State)
			}
		}
		if got := fmt.Sprint(failing); got != test.want {
			t.Errorf("%s: failing %s, want %s", name, got, test.want)
		}
	}
}

// Evidence that several requirements take over is one shard.
func TestCarriedOnce(t *testing.T) {
	e := []ledger.CarriedEvidence{{Attestation: "att_1", Predicate: "test:go", Status: ledger.Pass}}
	var p commitPage
	p.Requirements = []ledger.RequirementStatus{{Carried: e}, {Carried: e}}
	p.addChecks(nil, false)
	if len(p.Checks) != 1 || len(p.Checks[0].Shards) != 1 {
		t.Errorf("checks %+v", p.Checks)
	}
}
