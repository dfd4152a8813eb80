package policy

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/fields"
)

// The limits of new contracts. Within them, and within those of a commit, plain loops derive a state
// in milliseconds. Earlier releases allowed more.
const (
	MaxRequirements = 50
	MaxPatterns     = 256 // of signers, in all lists together
	MaxWildcards    = 4   // in a value of one of them
	MaxExpressions  = 10  // requirements with where
)

// A Size is how large a contract is, by its limits.
type Size struct{ requirements, patterns, wildcards, expressions int }

// Size returns the size of the contract.
func (c Contract) Size() Size {
	s := Size{requirements: len(c.Requirements)}
	s.add(c.Exceptions.Signers)
	s.add(c.Artifacts.Signers)
	for i := range c.Requirements {
		s.add(c.Requirements[i].Signers)
		s.add(c.Requirements[i].CarrySigners)
		if c.Requirements[i].hasExpression() {
			s.expressions++
		}
	}
	return s
}

func (s *Size) add(list []identity.Pattern) {
	s.patterns += len(list)
	for i := range list {
		s.wildcards = max(s.wildcards, list[i].Wildcards())
	}
}

// IsLarge reports whether the contract is larger than a new one may be.
func (c Contract) IsLarge() bool { return len(c.Excess(Size{})) > 0 }

// CheckSize returns CodeInvalidContract if the contract is larger than a new one may be, and larger
// than the one that it replaces.
func (c Contract) CheckSize(replaced Size) error {
	if faults := c.Excess(replaced); len(faults) > 0 {
		return ledger.FieldsError(ledger.CodeInvalidContract, faults...)
	}
	return nil
}

// Excess returns the limits that the contract exceeds if it replaces one of a size.
func (c Contract) Excess(replaced Size) []ledger.FieldError {
	var k fields.Check
	s := c.Size()
	atMost(&k, max(MaxRequirements, replaced.requirements), s.requirements, "too many: %d entries, at most %d")
	atMost(&k, max(MaxPatterns, replaced.patterns), s.patterns,
		"too many patterns of signers: %d in all lists together, at most %d")
	atMost(&k, max(MaxWildcards, replaced.wildcards), s.wildcards,
		"too many *: %d in a value of a pattern of signers, at most %d")
	atMost(&k, max(MaxExpressions, replaced.expressions), s.expressions, "too many with where: %d, at most %d")
	return k.Faults
}

// atMost records a fault of the requirements if n is more than the limit.
func atMost(k *fields.Check, limit, n int, format string) {
	if n > limit {
		k.Fault("requirements", format, n, limit)
	}
}
