package policytext

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Change is a requirement, or a rule of the radar, that was added or removed.
type Change struct {
	Sign  string       // + if added, - if removed
	State ledger.State // Draft for a rule of the radar
	Says  Sentence
}

// IsRadar reports whether the change is about Conflict Radar.
func (c Change) IsRadar() bool { return c.State == ledger.Draft }

// Changes describes what was removed from a contract and added to it.
func Changes(before, after policy.Contract) []Change {
	old, current := rulesOf(before), rulesOf(after)
	var changes []Change
	for _, r := range missingFrom(current, old) {
		changes = append(changes, Change{"-", r.State, r.Says})
	}
	for _, r := range missingFrom(old, current) {
		changes = append(changes, Change{"+", r.State, r.Says})
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Compare(a.State-ledger.Attested, b.State-ledger.Attested) // the radar last
	})
	return changes
}

// A rule is a requirement or what the radar does, in words. Rules with the same
// words are the same.
type rule struct {
	State ledger.State
	Says  Sentence
}

func rulesOf(c policy.Contract) []rule {
	var rules []rule
	for _, r := range c.Requirements {
		rules = append(rules, rule{r.State, describe(r)})
	}
	for _, says := range Radar(c.Radar) {
		rules = append(rules, rule{ledger.Draft, says})
	}
	return rules
}

// missingFrom returns the rules that some lacks, each as often as it lacks it.
func missingFrom(some, rules []rule) []rule {
	some = slices.Clone(some)
	var missing []rule
	for _, r := range rules {
		i := slices.IndexFunc(some, func(o rule) bool { return o.State == r.State && slices.Equal(o.Says, r.Says) })
		if i < 0 {
			missing = append(missing, r)
		} else {
			some = slices.Delete(some, i, i+1)
		}
	}
	return missing
}
