package contractfile

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

// TestLinesShowEveryChange checks that every difference between two contracts shows in
// their lines: 'policy apply' prints the changes from them.
func TestLinesShowEveryChange(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, base, variant policy.Contract) {
		if lines := Lines(variant); slices.Equal(lines, Lines(base)) {
			t.Errorf("the lines do not show the change: %q", lines)
		}
	})
}

func TestTypeLine(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","type":"https://slsa.dev/*"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Lines(c)[0], "ATTESTED needs type https://slsa.dev/*"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
