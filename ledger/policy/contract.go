// Package policy derives the state of a commit from its attestations: it parses the
// contract of a repo, evaluates its requirements, and computes the state.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
)

// Rules is the version of the rules by which new contracts are read. Version 1 had no number.
// Since version 2, not everybody links artifacts. Since version 3, not everybody claims merges. Since version 4, what
// registrations claim about paths is not believed.
const Rules = 4

// A Contract is a repo's policy: what a commit needs to reach each state. Parse sets the
// defaults, so a Contract is complete.
type Contract struct {
	// Rules is the version of the rules by which the contract is read: Rules, or in one that an
	// earlier release stored, a lower one. It is 0 before they had a number.
	Rules        int           `json:"rules,omitzero"`
	Requirements []Requirement `json:"requirements"`
	Targets      TargetRule    `json:"targets"`
	// Exceptions says whose exceptions count. The zero value means nobody's.
	Exceptions ExceptionRule `json:"exceptions,omitzero"`
	// Artifacts says who links artifacts with commits.
	Artifacts ArtifactRule       `json:"artifacts,omitzero"`
	Radar     conflicts.Settings `json:"radar"`
}

// An ExceptionRule says whose exceptions count, and for how long.
type ExceptionRule struct {
	Signers []identity.Pattern `json:"signers"`
	// MaxDuration is the longest time from the recording of an exception to its end.
	MaxDuration ledger.Duration `json:"max_duration"`
}

// An ArtifactRule says whose statements link the digests of artifacts with commits. With the
// zero value, package linking decides.
type ArtifactRule struct {
	Signers []identity.Pattern `json:"signers"`
}

// A TargetRule says for which branches the requirements of a commit are evaluated.
type TargetRule string

// The target rules.
const (
	// AllTargets are the repo's default branch, and all targets ever claimed for the commit.
	AllTargets TargetRule = "all"
	// ClaimedTargets are the targets ever claimed. Until one is claimed, it is the default branch.
	ClaimedTargets TargetRule = "claimed"
)

// Targets returns the branches that a commit is meant for. The claimed ones are all that
// registrations of the commit have named.
func (r TargetRule) Targets(defaultBranch string, claimed []string) []string {
	if len(claimed) > 0 && (r == ClaimedTargets || slices.Contains(claimed, defaultBranch)) {
		return claimed
	}
	return append([]string{defaultBranch}, claimed...)
}

// RecordFields returns the names of the members that a Policy has in addition to those
// of its Contract. The ledger sets them, and ignores them in requests, so that clients
// can edit a policy and send it back.
func RecordFields() []string {
	return []string{"org", "repo", "version", "digest", "created_at", "created_by"}
}

// Default returns the contract of a new repo: tests, a review by another person than the
// tests and the authors, and a deployment by another person than the review. With one key
// a commit becomes ATTESTED and no more. Tests and reviews carry to commits with the same
// tree.
func Default() Contract {
	one := func(s ledger.State, name, predicate string) Requirement {
		return Requirement{State: s, Name: name, Predicate: predicate, Threshold: 1,
			Accept: []ledger.Status{ledger.Pass}}
	}
	tests := one(ledger.Attested, "tests", "test:*")
	review := one(ledger.Promotable, "review", "review:*")
	deploy := one(ledger.Deployed, "deploy", "deploy:prod")

	tests.Carry, review.Carry = CarryTree, CarryTree
	review.ExcludeAuthor = AuthorExcluded
	review.DistinctFrom = []ledger.State{ledger.Attested}
	deploy.DistinctFrom = []ledger.State{ledger.Promotable}

	return Contract{
		Rules:        Rules,
		Requirements: []Requirement{tests, review, deploy},
		Targets:      AllTargets,
		Radar:        conflicts.Default(),
	}
}

// Canonical returns the contract as one line of JSON, with its defaults and with members
// in a fixed order. Documents that differ only in form have the same bytes. Lists retain
// their order.
func (c Contract) Canonical() []byte { return text.JSON(c) }

// Digest returns "sha256:" and the hex SHA-256 of the canonical document.
func (c Contract) Digest() string {
	sum := sha256.Sum256(c.Canonical())
	return "sha256:" + hex.EncodeToString(sum[:])
}

// MaxMatchedPaths is the maximum number of changed paths that are matched with the paths
// of a requirement. If there are more, the requirement applies.
const MaxMatchedPaths = glob.MaxMatched

// NeedsChanges reports whether any requirement depends on the paths that a commit
// changes. If so, Derive needs Facts.Changes, or if the contract SignsChanges, the change records in Facts.Evidence.
func (c Contract) NeedsChanges() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return len(r.Paths) > 0 })
}

// Subjects returns the distinct patterns for predicates and types in the contract.
func (c Contract) Subjects() []string {
	var subjects []string
	for i := range c.Requirements {
		subjects = append(subjects, c.Requirements[i].Subject())
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

// A Policy is one version of a repo's contract, with its metadata.
type Policy struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	Version int    `json:"version"`
	// Digest is "sha256:" and the hex digest of the canonical contract.
	Digest    string      `json:"digest"`
	CreatedAt ledger.Time `json:"created_at"`
	CreatedBy string      `json:"created_by"`
	Contract  `json:",embed"`
}

// A Summary is a version of a repo's policy without its contract, as lists have it.
type Summary struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	Version int    `json:"version"`
	// Digest is "sha256:" and the hex digest of the canonical contract.
	Digest    string      `json:"digest"`
	CreatedAt ledger.Time `json:"created_at"`
	CreatedBy string      `json:"created_by"`
}

// DeliversTo reports whether a deployment to an environment counts only if all commits that it ships are covered.
func (c *Contract) DeliversTo(environment string) bool {
	e := Evidence{Predicate: ledger.EnvironmentPredicate(environment), PredicateType: ledger.ResultType}
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Delivery && r.isAbout(&e) })
}

// Delivers reports whether e is a deployment that counts only if all commits that it ships are covered.
func (c *Contract) Delivers(e *Evidence) bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.Delivery && r.isAbout(e) && (e.Status == ledger.Pass || slices.Contains(r.Accept, e.Status))
	})
}

// mayExcuse reports whether an exception may stand in for what a deployment lacks: it does not for what is shipped and
// not covered.
func (c *Contract) mayExcuse(e *Evidence) bool { return e.WhilePromotable || !c.Delivers(e) }

// HasDelivery reports whether any deployment counts only if all commits that it ships are covered. If so, Derive needs
// Facts.Spans also of reviews that carry by tree.
func (c *Contract) HasDelivery() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Delivery })
}
