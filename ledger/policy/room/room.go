// Package room limits the evidence of a commit.
package room

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// maxNamed limits combinations of predicate, name and slot: people with many names may have more of these.
const maxNamed = 2 * policy.MaxTopics

// Check returns an error if a commit with the latest evidence in the list has no room
// for e: as many names or topics as are allowed, and e is of another one. People are those who
// have the name or the key of its signer. Evidence for a topic of the list under the same
// name always has room, even if an earlier release has recorded more of them.
func Check(list []policy.Evidence, e *policy.Evidence, people []int64) error {
	if len(list) < policy.MaxSigners || hasName(list, e) {
		return nil
	}
	if names := policy.SignersOf(list); len(names) >= policy.MaxSigners && !names[e.Signer] {
		return ledger.Errorf(ledger.CodeTooMuchEvidence, "%d names have signed evidence for the commit, which is the "+
			"maximum: only these can sign more", len(names))
	}
	if len(list) < policy.MaxTopics {
		return nil
	}
	if !hasTopic(list, *e, people) && len(policy.Latest(list)) >= policy.MaxTopics {
		return ledger.Errorf(ledger.CodeTooMuchEvidence, "the commit has evidence for %d combinations of predicate, person "+
			"and slot, which is the maximum: only newer evidence for one of these is recorded", policy.MaxTopics)
	}
	if len(list) >= maxNamed {
		return ledger.Errorf(ledger.CodeTooMuchEvidence, "the people who signed for the commit have used too many names "+
			"(%d combinations of predicate, name and slot): sign with one of these", maxNamed)
	}
	return nil
}

// hasTopic reports whether the list has evidence for the topic of e, by any of the people.
func hasTopic(list []policy.Evidence, e policy.Evidence, people []int64) bool {
	for i := range max(len(people), 1) {
		if len(people) > 0 {
			e.Person = people[i]
		}
		if slices.ContainsFunc(list, func(old policy.Evidence) bool { return old.SameTopic(&e) }) {
			return true
		}
	}
	return false
}

// hasName reports whether the list has evidence for the predicate and slot of e under the
// same name.
func hasName(list []policy.Evidence, e *policy.Evidence) bool {
	for i := range list {
		if old := &list[i]; old.Signer == e.Signer && old.Predicate == e.Predicate && old.Slot == e.Slot {
			return true
		}
	}
	return false
}
