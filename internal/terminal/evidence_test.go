package terminal

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestEvidence(t *testing.T) {
	for slot, want := range map[string]string{
		"":                                   "scan:x",
		"sha256:" + strings.Repeat("a1", 32): "scan:x for sha256:a1a1a1a1a1a1",
		"subjects:b2b2":                      "scan:x for subjects:b2b2",
		"name=api.tar.gz=" + strings.Repeat("u", 60): "scan:x for name=api.tar.gz=" + strings.Repeat("u", 24),
	} {
		if got := Evidence(ledger.AttestationRecord{Predicate: "scan:x", Slot: slot}); got != want {
			t.Errorf("%s: %q, want %q", slot, got, want)
		}
	}
}

func TestCause(t *testing.T) {
	for cause, want := range map[ledger.Cause]string{
		{Type: ledger.CausePolicy, ID: "2"}:       "policy 2",
		{Type: ledger.CauseExpiry, ID: "att_1"}:   "expiry of att_1",
		{Type: ledger.CauseIdentity, ID: "idn_1"}: "identity idn_1 (one person with another signer, or distrusted)",
		{Type: ledger.CauseUpgrade, ID: "2"}:      "upgrade (statements are read by rules 2)",
		{Type: "new", ID: "x"}:                    "new x",
	} {
		if got := Cause(cause); got != want {
			t.Errorf("%v: %q, want %q", cause, got, want)
		}
	}
}

func TestRequirement(t *testing.T) {
	for want, r := range map[string]ledger.RequirementStatus{
		"✓ 2 of 2": {Applies: true, Met: true, Have: 2, Need: 2},
		"✗ 1 of 2": {Applies: true, Have: 1, Need: 2},
		"- 0 of 1": {Need: 1},
		"✓ -":      {Applies: true, Met: true},
	} {
		if mark, have := Requirement(r); mark+" "+have != want {
			t.Errorf("%+v: %s %s, want %s", r, mark, have, want)
		}
	}
}

func TestLink(t *testing.T) {
	for want, l := range map[string]ledger.ArtifactLink{
		"✓ counts":                     {Counts: true, State: ledger.Deployed, Standing: ledger.Attested},
		"✗ has not reached ATTESTED":   {Counts: true, State: ledger.Deployed, Standing: ledger.Validating},
		"✓ counts (any_linker)":        {Counts: true, Standing: ledger.Promotable, Warning: ledger.AnyLinker},
		"- does not count: not linked": {State: ledger.Deployed, Reason: "not linked"},
	} {
		if mark, reason := Link(l, ledger.Attested); mark+" "+reason != want {
			t.Errorf("%+v: %s %s, want %s", l, mark, reason, want)
		}
	}
}
