package policy

import (
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/patterns"
)

// maxComparisons limits how many signers are compared with how many patterns to derive one
// state. A requirement whose patterns would pass the limit is unmet.
const maxComparisons = 2_000_000

// fewPatterns is the number of patterns of a contract up to which comparing a signer with
// each of them is faster than looking the result up.
const fewPatterns = 16

// exceptionBit is the number that stands in an assign.Set for the rule of exceptions.
const exceptionBit = assign.MaxRequirements

// A signerIndex finds for which requirements of a contract a signer may sign. It compares
// each signer once with each distinct pattern.
type signerIndex struct {
	patterns.List // those of exceptions, then in the order of requirements
	// of has the patterns of each requirement, and at last those of exceptions: positions in
	// Patterns.
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
	x.of[len(requirements)] = x.Add(exceptions)
	x.exceptionsEnd = len(x.Patterns)
	for i := range requirements {
		x.of[i] = x.Add(requirements[i].Signers)
		x.end[i] = len(x.Patterns)
	}
	return x
}

// match compares a signer with the first patterns, up to the limit.
func (x *signerIndex) match(d identity.DN, limit int) SignerMatch {
	m := SignerMatch{compared: min(limit, len(x.Patterns))}
	matches := make([]bool, m.compared)
	for i := range matches {
		matches[i] = x.Patterns[i].Match(d)
	}
	for i, of := range x.of {
		if i == len(x.of)-1 {
			i = exceptionBit
		}
		for _, at := range of {
			if at < len(matches) && matches[at] {
				m.set.Add(i)
				break
			}
		}
	}
	return m
}
