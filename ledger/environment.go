package ledger

import (
	"fmt"
	"strings"
)

// environmentPrefix begins the predicates that say where a commit was deployed.
const environmentPrefix = "deploy:"

// EnvironmentOf returns the name of the environment that a predicate is about. ok is false
// if it is not a predicate deploy:NAME.
func EnvironmentOf(predicate string) (name string, ok bool) {
	name, ok = strings.CutPrefix(predicate, environmentPrefix)
	return name, ok && name != ""
}

// EnvironmentPredicate returns the predicate of the deployments to an environment.
func EnvironmentPredicate(name string) string { return environmentPrefix + name }

// ParseEnvironment parses the name of an environment.
func ParseEnvironment(name string) (string, error) {
	if name == "" || !IsPredicateName(RollbackPredicate(name)) {
		return "", fmt.Errorf("%q is not the name of an environment (use what follows deploy: in the predicate, such as "+
			"prod)", name)
	}
	return name, nil
}

// ResultType is the ledger's own predicate type of results, such as those of deployments.
const ResultType = "https://github.com/ledgerd/ledgerd/predicate/result/v1"

// RollbackType is the predicate type of statements that take a commit out of an environment.
const RollbackType = "https://github.com/ledgerd/ledgerd/predicate/rollback/v1"

// RollbackPredicate returns the predicate of the rollbacks from an environment.
func RollbackPredicate(name string) string { return rollbackPrefix + name }

// RollbackOf returns the name of the environment from which a statement takes a commit. ok is
// false if it is of another type than RollbackType: earlier releases have recorded ordinary
// results whose predicates begin in the same way.
func RollbackOf(predicate, predicateType string) (name string, ok bool) {
	if predicateType != RollbackType {
		return "", false
	}
	return strings.CutPrefix(predicate, rollbackPrefix)
}

// BaselineType is the predicate type of statements that a commit runs in an environment since before
// deployments to it were recorded.
const BaselineType = "https://github.com/ledgerd/ledgerd/predicate/baseline/v1"

// BaselinePredicate returns the predicate of the baselines of an environment.
func BaselinePredicate(name string) string { return baselinePrefix + name }

// BaselineOf returns the name of the environment whose baseline a statement sets. ok is false if it
// is of another type than BaselineType, as with RollbackOf.
func BaselineOf(predicate, predicateType string) (name string, ok bool) {
	if predicateType != BaselineType {
		return "", false
	}
	return strings.CutPrefix(predicate, baselinePrefix)
}

// IsExcusable reports whether an exception may name a requirement: one of a contract, or
// rollback:NAME for the environment NAME.
func IsExcusable(requirement string) bool {
	if name, ok := strings.CutPrefix(requirement, rollbackPrefix); ok {
		_, err := ParseEnvironment(name)
		return err == nil
	}
	return IsRequirementName(requirement)
}

// RolloutFailed says of a deployment that it failed, and that what runs has not changed.
const RolloutFailed = "failed"

// Limits of an Environment.
const (
	// MaxBehind limits Deployment.Behind.
	MaxBehind = 100
	// MaxEnvironmentViolations limits Environment.OpenViolations.
	MaxEnvironmentViolations = 100
	// MaxEnvironments is the number of environments of a repo in the list of an org.
	MaxEnvironments = 50
)

// An Environment says what runs in one environment of a repo.
type Environment struct {
	Org  string `json:"org"`
	Repo string `json:"repo"`
	// Name is the part of the predicate after "deploy:".
	Name      string `json:"environment"`
	Predicate string `json:"predicate"`
	// Deployment is the latest deployment that counts and was not rolled back. It is nil if
	// what runs is unknown.
	Deployment *Deployment `json:"deployment,omitzero"`
	// Baseline is what runs there by the latest baseline. It is nil without a baseline, or if
	// Deployment is not nil.
	Baseline *Baseline `json:"baseline,omitzero"`
	// Rollback is the latest rollback after Deployment, or nil.
	Rollback *Rollback `json:"rollback,omitzero"`
	// OpenViolations is the number of open violations of the predicate. If it is
	// MaxEnvironmentViolations, there may be more.
	OpenViolations int `json:"open_violations"`
	// Violation is the newest open violation, or nil.
	Violation *EnvironmentViolation `json:"violation,omitzero"`
}

// A Deployment is the deployment of a commit to an environment, with what has become of the
// commit.
type Deployment struct {
	Commit string `json:"commit"`
	// State and Standing are those of the commit, now.
	State       State  `json:"state"`
	Standing    State  `json:"standing"`
	Branch      string `json:"branch"`
	Subject     string `json:"subject"`  // first line of the commit's message
	Identity    string `json:"identity"` // the signer's DN
	Attestation string `json:"attestation"`
	DeployedAt  Time   `json:"deployed_at"`
	// Required reports whether a DEPLOYED requirement named the predicate when the deployment
	// was recorded. If not, any trusted signer's pass counts.
	Required bool `json:"required"`
	// Behind is the number of commits for the same target branch that were registered later
	// and have reached PROMOTABLE. Commits with the same tree count once.
	Behind int `json:"behind"`
	// BehindMore reports whether there may be more of them.
	BehindMore bool `json:"behind_more"`
}

// A Baseline says that a commit runs in an environment since before deployments to it were recorded.
type Baseline struct {
	Commit      string `json:"commit"`
	Subject     string `json:"subject"`  // first line of the commit's message
	Identity    string `json:"identity"` // the signer's DN
	Attestation string `json:"attestation"`
	At          Time   `json:"at"`
	Reason      string `json:"reason,omitzero"`
}

// A CommitRollback says that a commit was rolled back from an environment, whose gate is shut for
// it since.
type CommitRollback struct {
	Environment string `json:"environment"`
	Identity    string `json:"identity"` // the signer's DN
	Reason      string `json:"reason"`
	Attestation string `json:"attestation"`
	At          Time   `json:"at"`
}

// String says who rolled the commit back, and why.
func (r CommitRollback) String() string {
	return "rolled back from " + r.Environment + " by " + r.Identity + ": " + r.Reason
}

// A Rollback is an attestation that ended the deployment of a commit.
type Rollback struct {
	Commit      string `json:"commit"`
	Attestation string `json:"attestation"`
	At          Time   `json:"at"`
}

// An EnvironmentViolation is an open violation: a deployment that did not count, but may be
// what runs.
type EnvironmentViolation struct {
	Commit      string `json:"commit"`
	Identity    string `json:"identity"` // the signer's DN
	Attestation string `json:"attestation"`
	OpenedAt    Time   `json:"opened_at"`
}
