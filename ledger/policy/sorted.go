package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A sortedEvidence finds the evidence that a requirement is about without looking at all.
type sortedEvidence struct {
	predicates, types []string // of the evidence, sorted
	// byPredicate and byType are the positions of the evidence in these orders. The second
	// is nil until it is needed.
	byPredicate, byType []int
	list                []Evidence
}

// newSortedEvidence returns nil for little evidence, for which it is slower.
func newSortedEvidence(list []Evidence) *sortedEvidence {
	if len(list) <= maxCompared {
		return nil
	}
	s := &sortedEvidence{list: list}
	s.byPredicate, s.predicates = sortedBy(list, func(e *Evidence) string { return e.Predicate })
	return s
}

func sortedBy(list []Evidence, text func(*Evidence) string) (order []int, texts []string) {
	order, texts = make([]int, len(list)), make([]string, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(strings.Compare(text(&list[a]), text(&list[b])), a-b)
	})
	for i, at := range order {
		texts[i] = text(&list[at])
	}
	return order, texts
}

// about returns the positions of the evidence that a requirement is about.
func (s *sortedEvidence) about(r *Requirement) []int {
	pattern, order, texts := r.Predicate, s.byPredicate, s.predicates
	if r.Type != "" || IsTypePattern(r.Predicate) {
		if s.byType == nil {
			s.byType, s.types = sortedBy(s.list, func(e *Evidence) string { return e.PredicateType })
		}
		pattern, order, texts = cmp.Or(r.Type, r.Predicate), s.byType, s.types
	}

	prefix := strings.TrimSuffix(pattern, "*")
	first, _ := slices.BinarySearch(texts, prefix)
	rest := texts[first:]
	n, _ := slices.BinarySearchFunc(rest, pattern, func(text, pattern string) int {
		if matchesPredicate(pattern, text) {
			return -1
		}
		return 1
	})
	return order[first : first+n]
}

// A statusSet is a set of statuses.
type statusSet uint8

const (
	passBit statusSet = 1 << iota
	warnBit
	failBit
	errorBit
	skipBit
	recordedBit

	failures = failBit | errorBit
)

func setOf(statuses ...ledger.Status) (set statusSet) {
	for _, s := range statuses {
		switch s {
		case ledger.Pass:
			set |= passBit
		case ledger.Warn:
			set |= warnBit
		case ledger.Fail:
			set |= failBit
		case ledger.Errored:
			set |= errorBit
		case ledger.Skip:
			set |= skipBit
		case ledger.Recorded:
			set |= recordedBit
		}
	}
	return set
}
