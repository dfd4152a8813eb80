package assign

import (
	"iter"
	"math/bits"
)

// MaxRequirements limits the requirements of a contract.
const MaxRequirements = 200

// A Set is a set of requirements, by their positions in the contract.
type Set [(MaxRequirements + 63) / 64]uint64

// Add adds a requirement.
func (s *Set) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Remove removes a requirement.
func (s *Set) Remove(i int) { s[i/64] &^= 1 << (i % 64) }

// Contains reports whether a requirement is in the set.
func (s *Set) Contains(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s *Set) isEmpty() bool { return *s == Set{} }

// All ranges over the requirements of the set, of which there are n in the contract.
func (s *Set) All(n int) iter.Seq[int] {
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
func (s *Set) meets(other *Set) bool {
	for i := range s {
		if s[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// and returns what two sets have in common.
func (s *Set) and(other *Set) (both Set) {
	for i := range s {
		both[i] = s[i] & other[i]
	}
	return both
}

// minus returns the set without the requirements of another one.
func (s *Set) minus(other *Set) (rest Set) {
	for i := range s {
		rest[i] = s[i] &^ other[i]
	}
	return rest
}
