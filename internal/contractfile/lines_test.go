package contractfile

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

// A change that the lines left out would be applied without being shown.
func TestLinesShowEveryChange(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, base, variant policy.Contract) {
		if lines := Lines(variant); slices.Equal(lines, Lines(base)) {
			t.Errorf("the lines are the same: %q", lines)
		}
	})
}
