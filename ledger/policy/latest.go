package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A topic is what a person's evidence is about. The latest evidence for a topic replaces
// what the person has said before.
type topic struct {
	person          person
	predicate, slot string
}

func (e *Evidence) topic() topic { return topic{e.person(), e.Predicate, e.Slot} }

// SameTopic reports whether both are about the same topic.
func (e *Evidence) SameTopic(other *Evidence) bool {
	return e.Predicate == other.Predicate && e.Slot == other.Slot && e.samePerson(other)
}

// Replaces reports whether e takes the place of other, which was recorded before, as
// the latest evidence. Evidence that states no outcome does not replace an outcome.
func (e *Evidence) Replaces(other *Evidence) bool {
	return e.SameTopic(other) && (e.Status != ledger.Recorded || other.Status == ledger.Recorded)
}

// Latest returns the latest evidence of each person for each predicate and slot, in the
// order of the list. It does not change the list.
func Latest(list []Evidence) []Evidence {
	if len(list) <= maxCompared && !hasReplaced(list) {
		return list
	}
	latest := make(map[topic]int, len(list))
	for i := range list {
		e := &list[i]
		if j, ok := latest[e.topic()]; !ok || e.isLater(&list[j]) {
			latest[e.topic()] = i
		}
	}

	result := make([]Evidence, 0, len(latest))
	for i := range list {
		if latest[list[i].topic()] == i {
			result = append(result, list[i])
		}
	}
	return result
}

// maxCompared is the length up to which comparing all pairs of a list is faster than a
// map.
const maxCompared = 16

// groups numbers the individuals of evidence, or if byPredicate is set, the distinct pairs of
// a person and a predicate, in the order in which they are added.
type groups struct {
	byPredicate bool
	list        []*Evidence   // the first of each group
	index       map[topic]int // nil up to maxCompared groups
}

// key returns the topic that stands for the group of e.
func (g *groups) key(e *Evidence) topic {
	if g.byPredicate {
		return topic{person: e.person(), predicate: e.Predicate}
	}
	return topic{person: e.individual()}
}

// find returns the number of the group of e, or -1.
func (g *groups) find(e *Evidence) int {
	if g.index != nil {
		if n, ok := g.index[g.key(e)]; ok {
			return n
		}
		return -1
	}
	for n, first := range g.list {
		if g.byPredicate && first.Predicate == e.Predicate && first.samePerson(e) ||
			!g.byPredicate && first.sameIndividual(e) {
			return n
		}
	}
	return -1
}

// add returns the number of the group of e, and whether the group is new.
func (g *groups) add(e *Evidence) (n int, isNew bool) {
	if n := g.find(e); n >= 0 {
		return n, false
	}
	g.list = append(g.list, e)
	switch n := len(g.list) - 1; {
	case g.index != nil:
		g.index[g.key(e)] = n
	case n >= maxCompared:
		g.index = make(map[topic]int, 2*n)
		for i := range g.list {
			g.index[g.key(g.list[i])] = i
		}
	}
	return len(g.list) - 1, true
}

// hasReplaced reports whether any two of the list are about the same topic.
func hasReplaced(list []Evidence) bool {
	for i := range list {
		for j := range i {
			if list[i].SameTopic(&list[j]) {
				return true
			}
		}
	}
	return false
}

// isLater reports whether e is the latest of two pieces of evidence for one topic.
func (e *Evidence) isLater(other *Evidence) bool {
	return IsLater(e.Status, other.Status, e.Attestation > other.Attestation)
}

// IsLater reports whether an attestation is the latest of two for one topic, given their statuses
// and whether it was recorded after the other. One that states no outcome does not replace an outcome.
func IsLater(status, other ledger.Status, isNewer bool) bool {
	if a, b := status == ledger.Recorded, other == ledger.Recorded; a != b {
		return b
	}
	return isNewer
}

// Overtaken returns the attestation that makes new evidence stale: the latest one for the
// same topic, if it finished later and has a worse result. A person could otherwise
// replay an early success to hide a later failure. It is empty if e is not stale.
func Overtaken(list []Evidence, e *Evidence) string {
	if old := latestLike(list, e); old != nil && e.isOvertakenBy(old) {
		return old.Attestation
	}
	return ""
}

// isOvertakenBy reports whether other evidence for the topic finished later, and has a worse
// result.
func (e *Evidence) isOvertakenBy(other *Evidence) bool {
	return e.FinishedAt != 0 && e.FinishedAt < other.FinishedAt && rank(e.Status) < rank(other.Status)
}

// latestLike returns the latest evidence of the list for the topic of e, or nil.
func latestLike(list []Evidence, e *Evidence) (latest *Evidence) {
	for i := range list {
		old := &list[i]
		if old.SameTopic(e) && (latest == nil || old.isLater(latest)) {
			latest = old
		}
	}
	return latest
}

// Finished returns when the latest evidence for the topic of e finished, once e has
// replaced its predecessors in the list. If e repeats the result of its predecessor, it
// is the later one of their times: recording an older failure does not help to replay a
// success.
func Finished(list []Evidence, e *Evidence) ledger.Time {
	if old := latestLike(list, e); old != nil && rank(old.Status) == rank(e.Status) {
		return max(old.FinishedAt, e.FinishedAt)
	}
	return e.FinishedAt
}

// rank orders results from the best to the worst. Those that state no outcome have none
// to compare.
func rank(s ledger.Status) int {
	return slices.Index([]ledger.Status{ledger.Recorded, ledger.Pass, ledger.Warn, ledger.Skip, ledger.Fail}, failing(s))
}

// failing returns fail for an error, which is no better.
func failing(s ledger.Status) ledger.Status {
	if s == ledger.Errored {
		return ledger.Fail
	}
	return s
}

const (
	// MaxTopics limits what the evidence of one commit is about: combinations of predicate,
	// person and slot. Every attestation reads the evidence of its commit.
	MaxTopics = 400
	// MaxSigners limits the names that have signed the evidence of one commit, and what carries to it.
	MaxSigners = 80
)

// SignersOf returns the names that have signed evidence.
func SignersOf(list []Evidence) map[identity.DN]bool {
	names := make(map[identity.DN]bool)
	for i := range list {
		names[list[i].Signer] = true
	}
	return names
}
