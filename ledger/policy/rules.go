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

// buildPrefix is that of the predicates which say how an artifact was built.
const buildPrefix = "build:"

// IsBuild reports whether a predicate says how an artifact was built.
func IsBuild(predicate string) bool { return strings.HasPrefix(predicate, buildPrefix) }

// Builds reports whether a statement says how an artifact was built: a build that did not fail, and
// was not skipped.
func Builds(predicate string, status ledger.Status) bool {
	return IsBuild(predicate) && status != ledger.Fail && status != ledger.Errored && status != ledger.Skip
}

// AnyLinker reports whether everybody who may attest build:* links artifacts, which is so for
// identities without a list of predicates, too. Contracts of a release before Rules say so.
func (c Contract) AnyLinker() bool { return c.Rules < 2 && len(c.Artifacts.Signers) == 0 }

// CheckClaims returns CodePredicateNotAllowed if a signer may not make a claim about several commits, or set a baseline.
// AnyClaimer says who may claim merges by the rules of an earlier release.
func (c Contract) CheckClaims(predicate string, s *identity.Signer) error {
	if c.AnyClaimer() && strings.HasPrefix(predicate, "merge:") {
		return nil
	}
	return s.CheckClaims(predicate)
}

// AnyClaimer reports whether everybody claims merges who may attest merge:*, which is so for identities without a list
// of predicates, too. Contracts of a release before version 3 of the rules say so.
func (c Contract) AnyClaimer() bool { return c.Rules < 3 }

// LinkRefusal says why a statement for a predicate does not link artifacts with its commit, given
// its status, its signer and what the signer's identity may attest now. It is empty if the statement does.
// warning is ledger.AnyLinker if the statement does so only because of AnyLinker.
func (c Contract) LinkRefusal(
	predicate string, status ledger.Status, signer identity.DN, may identity.Predicates,
) (refusal string, warning ledger.LinkWarning) {
	if rule := c.Artifacts.Signers; len(rule) > 0 {
		if slices.ContainsFunc(rule, func(p identity.Pattern) bool { return p.Match(signer) }) {
			return "", ""
		}
		return "the signer is not in the policy's artifacts.signers", ""
	}

	switch {
	case !IsBuild(predicate):
		refusal = "only statements for build: predicates link artifacts (name the signer in the policy's artifacts.signers)"
	case !Builds(predicate, status):
		refusal = "the build did not pass"
	case !may.Names(buildPrefix, predicate):
		refusal = "no build: pattern of the signer's identity matches it " +
			"(name the signer in the policy's artifacts.signers, or give its identity --may build:…)"
	}
	if refusal != "" && c.AnyLinker() && may.MatchSome(buildPrefix) {
		return "", ledger.AnyLinker
	}
	return refusal, ""
}

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
