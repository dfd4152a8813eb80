// Package linking says whose statements link artifacts with commits.
package linking

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

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
// identities without a list of predicates, too. Contracts of a release before policy.Rules say so.
func AnyLinker(c *policy.Contract) bool { return c.Rules < 2 && len(c.Artifacts.Signers) == 0 }

// Refusal says why a statement for a predicate does not link artifacts with its commit, given
// its status, its signer and what the signer's identity may attest now. It is empty if the statement does.
// warning is ledger.AnyLinker if the statement does so only because of AnyLinker.
func Refusal(c *policy.Contract, predicate string, status ledger.Status, signer identity.DN, may identity.Predicates,
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
	if refusal != "" && AnyLinker(c) && may.MatchSome(buildPrefix) {
		return "", ledger.AnyLinker
	}
	return refusal, ""
}
