package policy

import (
	"iter"
	"math/bits"
)

// maxRequirements limits the requirements of a contract.
const maxRequirements = 200

// A requirementSet is a set of requirements, by their positions in the contract.
type requirementSet [(maxRequirements + 63) / 64]uint64

func (s *requirementSet) add(i int)           { s[i/64] |= 1 << (i % 64) }
func (s *requirementSet) remove(i int)        { s[i/64] &^= 1 << (i % 64) }
func (s *requirementSet) contains(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s *requirementSet) isEmpty() bool       { return *s == requirementSet{} }

// all ranges over the requirements of the set, of which there are n in the contract.
func (s *requirementSet) all(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for w := range (n + 63) / 64 {
			for word := s[w]; word != 0; word &= word - 1 {
				if !yield(w*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// meets reports whether two sets have a requirement in common.
func (s *requirementSet) meets(other *requirementSet) bool {
	for i := range s {
		if s[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// and returns what two sets have in common.
func (s *requirementSet) and(other *requirementSet) (both requirementSet) {
	for i := range s {
		both[i] = s[i] & other[i]
	}
	return both
}

// minus returns the set without the requirements of another one.
func (s *requirementSet) minus(other *requirementSet) (rest requirementSet) {
	for i := range s {
		rest[i] = s[i] &^ other[i]
	}
	return rest
}
