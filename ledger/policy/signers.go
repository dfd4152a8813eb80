package policy

import "github.com/ledgerd/ledgerd/ledger/identity"

// maxComparisons limits how many signers are compared with how many patterns to derive one
// state. A requirement whose patterns would pass the limit is unmet.
const maxComparisons = 2_000_000

// fewPatterns is the number of patterns of a contract up to which comparing a signer with
// each of them is faster than looking the result up.
const fewPatterns = 16

// exceptionBit is the number that stands in a requirementSet for the rule of exceptions.
const exceptionBit = maxRequirements

// A patternList is a list of distinct patterns.
type patternList struct {
	patterns  []identity.Pattern
	positions map[string]int // by text
}

// add adds patterns that the list does not have, and returns the positions of all of them.
func (l *patternList) add(patterns []identity.Pattern) (of []int) {
	if l.positions == nil {
		l.positions = make(map[string]int)
	}
	for _, p := range patterns {
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

// A signerIndex finds for which requirements of a contract a signer may sign. It compares
// each signer once with each distinct pattern.
type signerIndex struct {
	patternList // those of exceptions, then in the order of requirements
	// of has the patterns of each requirement, and at last those of exceptions: positions in
	// patterns.
	of [][]int
	// end is, by requirement, the number of patterns that this requirement and those
	// before it have.
	end []int
	// exceptionsEnd is the number of patterns of exceptions.
	exceptionsEnd int
}

// newSignerIndex returns the index of the patterns of exceptions and of requirements, or nil
// without any.
func newSignerIndex(exceptions []identity.Pattern, requirements []Requirement) *signerIndex {
	count := len(exceptions)
	for i := range requirements {
		count += len(requirements[i].Signers)
	}
	if count == 0 {
		return nil
	}

	x := &signerIndex{of: make([][]int, len(requirements)+1), end: make([]int, len(requirements))}
	x.of[len(requirements)] = x.add(exceptions)
	x.exceptionsEnd = len(x.patterns)
	for i := range requirements {
		x.of[i] = x.add(requirements[i].Signers)
		x.end[i] = len(x.patterns)
	}
	return x
}

// match compares a signer with the first patterns, up to the limit.
func (x *signerIndex) match(d identity.DN, limit int) SignerMatch {
	m := SignerMatch{compared: min(limit, len(x.patterns))}
	matches := make([]bool, m.compared)
	for i := range matches {
		matches[i] = x.patterns[i].Match(d)
	}
	for i, of := range x.of {
		if i == len(x.of)-1 {
			i = exceptionBit
		}
		for _, at := range of {
			if at < len(matches) && matches[at] {
				m.set.add(i)
				break
			}
		}
	}
	return m
}
