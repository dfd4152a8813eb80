package policytext

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A Change is a requirement or a radar setting that was added or removed.
type Change struct {
	Sign  string       // + if added, - if removed
	State ledger.State // Draft for a radar setting
	Says  Sentence
}

// IsRadar reports whether the change is in the radar settings.
func (c Change) IsRadar() bool { return c.State == ledger.Draft }

// Changes returns the rules that two contracts do not share: by state, the removed
// ones before the added ones, and radar settings last.
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

// A rule is a requirement or a radar setting in words. Rules of one state with the
// same words are equal.
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

// missingFrom returns rules without those in present. Each rule in present matches
// one rule only, so duplicates count.
func missingFrom(present, rules []rule) []rule {
	present = slices.Clone(present)
	var missing []rule
	for _, r := range rules {
		i := slices.IndexFunc(present, func(o rule) bool { return o.State == r.State && slices.Equal(o.Says, r.Says) })
		if i < 0 {
			missing = append(missing, r)
		} else {
			present = slices.Delete(present, i, i+1)
		}
	}
	return missing
}
