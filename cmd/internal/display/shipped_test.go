package display

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// What is printed under a delivery covers what is not covered, or says nothing.
func TestRemedyOfADelivery(t *testing.T) {
	const sha = "c000000000000000"
	author := ledger.Author{Name: "Ada"}
	gaps := func(n int) (list []ledger.Gap) {
		for i := range n {
			list = append(list, ledger.Gap{Commit: fmt.Sprintf("a%015d", i), Author: author})
		}
		return list
	}
	ran := &ledger.DeliveryBase{Commit: "b000000000000000"}
	const one = "review approve acme/api --commit a00000000000 --key FILE."
	const all = "--from b00000000000 --commit c00000000000 "

	for name, test := range map[string]struct {
		delivery ledger.Delivery
		want     string // empty if nothing is to be said
	}{
		"one": {ledger.Delivery{Base: ran, ContainsBase: true, Commits: 2, Uncovered: 1, Gaps: gaps(1)},
			"To review it, use ledgerd " + one},
		"several": {ledger.Delivery{Base: ran, ContainsBase: true, Commits: 3, Uncovered: 2, Gaps: gaps(2)},
			"To review all of them, use ledgerd review approve acme/api " + all},
		"several of a hotfix, which does not contain what runs": {
			ledger.Delivery{Base: ran, Commits: 3, Uncovered: 2, Gaps: gaps(2)}, "To review the first, use ledgerd " + one},
		"as many as a review can be about": {
			ledger.Delivery{Base: ran, ContainsBase: true, Commits: 500, Uncovered: 500, Gaps: gaps(10)}, all},
		"more than a review can be about": {
			ledger.Delivery{Base: ran, ContainsBase: true, Commits: 501, Uncovered: 500, Gaps: gaps(10)},
			"To review all of them in steps of at most 500 commits, begin with this: " +
				"use ledgerd review approve acme/api --from b00000000000 --commit REV --key FILE."},
		"a commit of nobody": {
			ledger.Delivery{Base: ran, ContainsBase: true, Commits: 2, Uncovered: 1,
				Gaps: []ledger.Gap{{Commit: "a000000000000000"}}},
			"To review it, use ledgerd " + one},
		"a commit that is not known": {ledger.Delivery{Base: ran, ContainsBase: true, Commits: 2, Uncovered: 1,
			Gaps: []ledger.Gap{{Commit: "a000000000000000", Author: author, Unknown: true}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := remedy("acme/api", sha, &test.delivery)
			if !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
				t.Errorf("it says %q, want %q", text, test.want)
			}
		})
	}
}
