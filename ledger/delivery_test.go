package ledger

import (
	"slices"
	"strings"
	"testing"
)

// The reasons of a delivery have the number of what is not covered, the commit itself included, and the first ten.
func TestReasonsOfADelivery(t *testing.T) {
	d := Delivery{Environment: "prod", Base: &DeliveryBase{}, Commits: 12, Uncovered: 11}
	var want []string
	for name := range strings.SplitSeq("abcdefghij", "") {
		d.Gaps = append(d.Gaps, Gap{Commit: name, Reasons: []string{"no review", "no test"}})
		want = append(want, name+" is not covered: no review; no test")
	}
	want[0] = "it ships 11 commits to prod that are not covered; " + want[0]
	if reasons := d.Reasons(); !slices.Equal(reasons, want) {
		t.Errorf("the reasons are %q, want %q", reasons, want)
	}
}
