package policy

import "github.com/ledgerd/ledgerd/ledger/identity"

// maxComparisons limits how many signers are compared with how many patterns to derive one
// state. A requirement whose patterns would pass the limit is unmet.
const maxComparisons = 2_000_000

// fewPatterns is the number of patterns of a contract up to which comparing a signer with
// each of them is faster than looking the result up.
const fewPatterns = 16

// A signerIndex finds for which requirements of a contract a signer may sign. It compares
// each signer once with each distinct pattern.
type signerIndex struct {
	patterns []identity.Pattern // distinct, in the order of requirements
	// of has the patterns of each requirement: positions in patterns.
	of [][]int
	// end is, by requirement, the number of patterns that this requirement and those
	// before it have.
	end []int
}

// newSignerIndex returns the index of a contract's requirements, or nil if they have few
// patterns.
func newSignerIndex(requirements []Requirement) *signerIndex {
	count := 0
	for i := range requirements {
		count += len(requirements[i].Signers)
	}
	if count <= fewPatterns {
		return nil
	}

	x := &signerIndex{of: make([][]int, len(requirements)), end: make([]int, len(requirements))}
	positions := make(map[string]int, count)
	for i := range requirements {
		for _, p := range requirements[i].Signers {
			text := p.String()
			at, ok := positions[text]
			if !ok {
				at = len(x.patterns)
				positions[text] = at
				x.patterns = append(x.patterns, p)
			}
			x.of[i] = append(x.of[i], at)
		}
		x.end[i] = len(x.patterns)
	}
	return x
}

// tooMany reports whether comparing so many signers with the patterns of a requirement, and
// of those before it, would pass the limit.
func (x *signerIndex) tooMany(requirement, signers int) bool {
	return x != nil && len(x.of[requirement]) > 0 && x.end[requirement]*signers > maxComparisons
}

// requirements returns the requirements that have patterns of which any matches the signer.
func (x *signerIndex) requirements(d identity.DN) (set requirementSet) {
	matches := make([]bool, len(x.patterns))
	for i := range x.patterns {
		matches[i] = x.patterns[i].Match(d)
	}
	for i, of := range x.of {
		for _, at := range of {
			if matches[at] {
				set.add(i)
				break
			}
		}
	}
	return set
}
