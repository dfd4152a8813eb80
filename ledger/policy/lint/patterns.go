package lint

import "github.com/ledgerd/ledgerd/ledger/identity"

// A patternList is a list of distinct patterns.
type patternList struct {
	patterns  []identity.Pattern
	positions map[string]int // by text
}

// add adds patterns that the list does not have, and returns the positions of all of them.
func (l *patternList) add(list []identity.Pattern) (of []int) {
	if l.positions == nil {
		l.positions = make(map[string]int)
	}
	for _, p := range list {
		text := p.String()
		at, ok := l.positions[text]
		if !ok {
			at = len(l.patterns)
			l.positions[text] = at
			l.patterns = append(l.patterns, p)
		}
		of = append(of, at)
	}
	return of
}
