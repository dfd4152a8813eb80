package attestation

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Rollback is the body of the predicate type for rollbacks: the commit no longer runs in an
// environment.
type Rollback struct {
	// Repo is the repo that the rollback is for, as org/name.
	Repo string `json:"repo"`
	// Environment is the part of the predicate of the deployments after "deploy:".
	Environment string `json:"environment"`
	Reason      string `json:"reason"`
	// To is the commit that runs in place of the one that was rolled back: one whose deployment to
	// the environment counted. It is the latest such one if To is zero.
	To RunningCommit `json:"to,omitzero"`
	// IssuedOn makes the statements of two rollbacks differ that are otherwise equal.
	IssuedOn ledger.Time `json:"issuedOn,omitzero"`
}

// A RunningCommit is the commit that runs after a rollback.
type RunningCommit struct {
	SHA string `json:"sha"`
}

// check returns an error for the first invalid field.
func (r *Rollback) check() error {
	if err := checkEnvironment(r.Repo, r.Environment, "a rollback"); err != nil {
		return err
	}
	switch {
	case r.Reason == "":
		return fault("reason", "required: say why the commit is rolled back")
	case r.To.SHA != "" && !ledger.IsCommit(r.To.SHA):
		return fault("to.sha", "%q is not a full object ID (use 40 or 64 lower-case hex digits)", text.Clip(r.To.SHA))
	}
	return checkReason("reason", r.Reason)
}

// checkCommit refuses a rollback of a commit to itself.
func (r *Rollback) checkCommit(commit string) error {
	if r.To.SHA != commit {
		return nil
	}
	return fault("to.sha", "is the commit that is rolled back")
}

// A Baseline is the body of the predicate type for baselines: the commit runs in an environment since
// before deployments to it were recorded.
type Baseline struct {
	// Repo is the repo that the baseline is for, as org/name.
	Repo string `json:"repo"`
	// Environment is as in Rollback.
	Environment string `json:"environment"`
	// Reason says how that is known. It may be empty.
	Reason string `json:"reason,omitzero"`
	// IssuedOn makes the statements of two baselines differ that are otherwise equal.
	IssuedOn ledger.Time `json:"issuedOn,omitzero"`
}

// check returns an error for the first invalid field.
func (b *Baseline) check() error {
	if err := checkEnvironment(b.Repo, b.Environment, "a baseline"); err != nil {
		return err
	}
	return checkReason("reason", b.Reason)
}

// checkEnvironment validates the repo and the environment of a statement about an environment.
func checkEnvironment(repo, environment, what string) error {
	switch {
	case repo == "":
		return fault("repo", "required (use e.g. acme/api): %s is for one repo", what)
	case !isRepo(repo):
		return fault("repo", "%q is not a repo (use e.g. acme/api)", text.Clip(repo))
	case environment == "":
		return fault("environment", "required: the part of the predicate of the deployments after deploy:, such as prod")
	}
	if _, err := ledger.ParseEnvironment(environment); err != nil {
		return fault("environment", "%q is not the name of an environment (use e.g. prod)", text.Clip(environment))
	}
	return nil
}
