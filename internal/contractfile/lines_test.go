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
