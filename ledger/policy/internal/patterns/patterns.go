// Package patterns holds what contracts and their reviews share: lists of distinct patterns
// of signers.
package patterns

import "github.com/ledgerd/ledgerd/ledger/identity"

// A List is a list of distinct patterns.
type List struct {
	Patterns  []identity.Pattern
	positions map[string]int // by text
}

// Add adds patterns that the list does not have, and returns the positions of all of them.
func (l *List) Add(patterns []identity.Pattern) (of []int) {
	if l.positions == nil {
		l.positions = make(map[string]int)
	}
	for _, p := range patterns {
		text := p.String()
		at, ok := l.positions[text]
		if !ok {
			at = len(l.Patterns)
			l.positions[text] = at
			l.Patterns = append(l.Patterns, p)
		}
		of = append(of, at)
	}
	return of
}
