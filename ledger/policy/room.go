package policy

import "github.com/ledgerd/ledgerd/ledger"

const (
	// MaxTopics limits what the evidence of one commit is about: combinations of predicate,
	// person and slot. Every attestation reads the evidence of its commit.
	MaxTopics = 1000
	// maxNamed limits combinations of predicate, name and slot: people with many names may
	// have more of these.
	maxNamed = 2 * MaxTopics
)

// CheckRoom returns an error if a commit with the latest evidence in the list has no room
// for e: as many topics as are allowed, and e is about another one. People are those who
// have the name or the key of its signer. Evidence for a topic of the list under the same
// name always has room, even if an earlier release has recorded more of them.
func CheckRoom(list []Evidence, e *Evidence, people []int64) error {
	if len(list) < MaxTopics || hasName(list, e) {
		return nil
	}
	if !hasTopic(list, *e, people) && len(Latest(list)) >= MaxTopics {
		return ledger.Errorf(ledger.CodeTooMuchEvidence, "the commit has evidence for %d combinations of predicate, person "+
			"and slot, which is the maximum: only newer evidence for one of these is recorded", MaxTopics)
	}
	if len(list) >= maxNamed {
		return ledger.Errorf(ledger.CodeTooMuchEvidence, "the people who signed for the commit have used too many names "+
			"(%d combinations of predicate, name and slot): sign with one of these", maxNamed)
	}
	return nil
}

// hasTopic reports whether the list has evidence for the topic of e, by any of the people.
func hasTopic(list []Evidence, e Evidence, people []int64) bool {
	for i := range max(len(people), 1) {
		if len(people) > 0 {
			e.Person = people[i]
		}
		if latestLike(list, &e) != nil {
			return true
		}
	}
	return false
}

// hasName reports whether the list has evidence for the predicate and slot of e under the
// same name.
func hasName(list []Evidence, e *Evidence) bool {
	for i := range list {
		if old := &list[i]; old.Signer == e.Signer && old.Predicate == e.Predicate && old.Slot == e.Slot {
			return true
		}
	}
	return false
}
