// Package size limits how large contracts are.
package size

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/fields"
)

// A Size is how large a contract is, by its limits.
type Size struct{ requirements, patterns, wildcards, expressions int }

// Of returns the size of a contract.
func Of(c *policy.Contract) Size {
	s := Size{requirements: len(c.Requirements)}
	s.add(c.Exceptions.Signers)
	s.add(c.Artifacts.Signers)
	for i := range c.Requirements {
		s.add(c.Requirements[i].Signers)
		s.add(c.Requirements[i].CarrySigners)
		if c.Requirements[i].Expression() != "" {
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
func IsLarge(c *policy.Contract) bool { return len(Excess(c, Size{})) > 0 }

// Check returns CodeInvalidContract if the contract is larger than a new one may be, and larger
// than the one that it replaces.
func Check(c *policy.Contract, replaced Size) error {
	if faults := Excess(c, replaced); len(faults) > 0 {
		return ledger.FieldsError(ledger.CodeInvalidContract, faults...)
	}
	return nil
}

// Excess returns the limits that the contract exceeds if it replaces one of a size.
func Excess(c *policy.Contract, replaced Size) []ledger.FieldError {
	var k fields.Check
	s := Of(c)
	atMost(&k, max(policy.MaxRequirements, replaced.requirements), s.requirements, "too many: %d entries, at most %d")
	atMost(&k, max(policy.MaxPatterns, replaced.patterns), s.patterns,
		"too many patterns of signers: %d in all lists together, at most %d")
	atMost(&k, max(policy.MaxWildcards, replaced.wildcards), s.wildcards,
		"too many *: %d in a value of a pattern of signers, at most %d")
	atMost(&k, max(policy.MaxExpressions, replaced.expressions), s.expressions, "too many with where: %d, at most %d")
	return k.Faults
}

// atMost records a fault of the requirements if n is more than the limit.
func atMost(k *fields.Check, limit, n int, format string) {
	if n > limit {
		k.Fault("requirements", format, n, limit)
	}
}
