package policy

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// IsDefault reports whether the contract is that of a new repo, in this release or in one before
// Rules.
func (c Contract) IsDefault() bool {
	c.Rules = Rules
	return c.Digest() == Default().Digest()
}

// IsOf reports whether an event is about this contract: whether it has its digest and its rules.
func (c Contract) IsOf(e ledger.PolicyEvent) bool {
	return c.Digest() == e.Digest && c.Rules == e.Rules
}

// CheckClaims returns CodePredicateNotAllowed if a signer may not make a claim about several commits, or set a
// baseline. AnyClaimer says who may claim merges by the rules of an earlier release.
func (c Contract) CheckClaims(predicate string, s *identity.Signer) error {
	if c.AnyClaimer() && strings.HasPrefix(predicate, "merge:") {
		return nil
	}
	return s.CheckClaims(predicate)
}

// AnyClaimer reports whether everybody claims merges who may attest merge:*, which is so for identities without a list
// of predicates, too. Contracts of a release before version 3 of the rules say so.
func (c Contract) AnyClaimer() bool { return c.Rules < 3 }

// SignsChanges reports whether signed change records alone say which paths a commit changes. Contracts of a release
// before version 4 of the rules believe what registrations claim.
func (c Contract) SignsChanges() bool { return c.Rules >= 4 }

// FollowsRecords reports whether change records decide which requirements apply.
func (c Contract) FollowsRecords() bool { return c.SignsChanges() && c.NeedsChanges() }

// NeedsVerdicts reports whether any requirement has an expression. If so, Derive needs
// Facts.Verdicts.
func (c Contract) NeedsVerdicts() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.hasExpression() })
}

// Expressions returns the different expressions of the requirements that are about the
// predicate of e, or its type, with any signer. Derive needs a verdict of each on e.
func (c Contract) Expressions(e *Evidence) []string {
	var list []string
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if !r.hasExpression() || !r.isAbout(e) {
			continue
		}
		if x := r.Expression(); !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}
