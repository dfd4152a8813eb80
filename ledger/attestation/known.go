package attestation

import "strings"

// Known returns what is known of statements of a predicate type before any is received: a
// pattern of their predicates, and whether they can have another status than
// ledger.Recorded.
func Known(predicateType string) (predicates string, outcome bool) {
	for _, m := range mappings {
		if m.covers(predicateType) {
			return m.pattern(), m.Result != "`recorded`"
		}
	}
	return predicateType, false
}

// RecordedPredicates returns patterns of the predicates of statements that can be
// ledger.Recorded. A pattern is exact, or a prefix that ends in *.
func RecordedPredicates() []string {
	patterns := []string{"signed:*", "merge:*", "exception:*"} // reserved, so nobody is misled
	for _, m := range mappings {
		if strings.Contains(m.Result, "`recorded`") {
			patterns = append(patterns, m.pattern())
		}
	}
	return patterns
}

// pattern returns a pattern of the predicates of the mapping's types.
func (m *Mapping) pattern() string {
	switch first := strings.Split(m.Predicate, "`")[1]; {
	case strings.HasPrefix(first, "predicate."): // the statement chooses it
		return "*"
	case strings.HasSuffix(first, ":"):
		return first + "*"
	default:
		return first
	}
}
