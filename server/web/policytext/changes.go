package policytext

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Change is a requirement or a setting that was added or removed.
type Change struct {
	Sign string // + if added, - if removed
	// Topic is the state of a requirement, or the name of a group of settings.
	Topic string
	Says  Sentence
}

// topics holds the topics of rules in their order.
var topics = []string{format.State(ledger.Attested), format.State(ledger.Promotable), format.State(ledger.Deployed),
	"Targets", "Exceptions", "Artifacts", "Rules", "Radar"}

// Changes returns the rules that two contracts do not share: by topic, and of each the
// removed ones before the added ones.
func Changes(before, after policy.Contract) []Change {
	old, current := rulesOf(before), rulesOf(after)
	var changes []Change
	for _, r := range missingFrom(current, old) {
		changes = append(changes, Change{"-", r.Topic, r.Says})
	}
	for _, r := range missingFrom(old, current) {
		changes = append(changes, Change{"+", r.Topic, r.Says})
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Compare(slices.Index(topics, a.Topic), slices.Index(topics, b.Topic))
	})
	return changes
}

// A rule is a requirement or a setting in words. Rules of one topic with the same words
// are equal.
type rule struct {
	Topic string
	Says  Sentence
}

func rulesOf(c policy.Contract) []rule {
	var rules []rule
	for _, r := range c.Requirements {
		rules = append(rules, rule{format.State(r.State), describe(r)})
	}
	rules = append(rules, rule{"Targets", Targets(c.Targets)}, rule{"Exceptions", Exceptions(c.Exceptions)},
		rule{"Artifacts", Artifacts(c)})
	if c.Rules > 0 {
		rules = append(rules, rule{"Rules", Sentence{}.text("Version %d.", c.Rules)})
	}
	for _, says := range Radar(c.Radar) {
		rules = append(rules, rule{"Radar", says})
	}
	return rules
}

// missingFrom returns rules without those in present. Each rule in present matches
// one rule only, so duplicates count.
func missingFrom(present, rules []rule) []rule {
	present = slices.Clone(present)
	var missing []rule
	for _, r := range rules {
		i := slices.IndexFunc(present, func(o rule) bool { return o.Topic == r.Topic && slices.Equal(o.Says, r.Says) })
		if i < 0 {
			missing = append(missing, r)
		} else {
			present = slices.Delete(present, i, i+1)
		}
	}
	return missing
}
