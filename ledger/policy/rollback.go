package policy

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// A rollback is the last statement that took a commit out of an environment.
type rollback struct {
	*Evidence
	environment string
	// deployment is like the deployments that it undoes.
	deployment Evidence
	// exception keeps the gate open. It is nil if none does.
	exception *Exception
}

// record returns the rollback as records have it.
func (r *rollback) record() ledger.CommitRollback {
	return ledger.CommitRollback{Environment: r.environment, Identity: r.Signer.String(), Reason: r.Reason,
		Attestation: r.Attestation, At: r.RecordedAt}
}

// isBefore reports whether e is a deployment after the rollback.
func (r *rollback) isBefore(e *Evidence) bool {
	return e.Source == 0 && e.Predicate == r.deployment.Predicate && e.Attestation > r.Attestation
}

// undoes reports whether e is a deployment before the rollback.
func (r *rollback) undoes(e *Evidence) bool {
	return e.Source == 0 && e.Predicate == r.deployment.Predicate && e.Attestation < r.Attestation
}

// isRollback reports whether e took its commit out of an environment.
func (e *Evidence) isRollback() bool {
	_, ok := ledger.RollbackOf(e.Predicate, e.PredicateType)
	return ok
}

// HasRollback reports whether any of the evidence is a rollback.
func HasRollback(list []Evidence) bool {
	return slices.ContainsFunc(list, func(e Evidence) bool { return e.isRollback() })
}

// isBaseline reports whether e sets the baseline of an environment.
func (e *Evidence) isBaseline() bool {
	_, ok := ledger.BaselineOf(e.Predicate, e.PredicateType)
	return ok
}

// deployment returns a deployment to an environment by the signer of e.
func (e *Evidence) deployment(environment string) Evidence {
	d := *e
	d.Predicate, d.PredicateType = ledger.EnvironmentPredicate(environment), ledger.ResultType
	return d
}

const exceptionPrefix = "exception:"

// withoutStatements returns evidence without exceptions, rollbacks, baselines and change records, which no requirement
// is about, and the rollbacks.
func withoutStatements(list []Evidence) (others, rollbacks []Evidence) {
	isStatement := func(e Evidence) bool {
		return ledger.ReservedPrefix(e.Predicate) == exceptionPrefix || e.isRollback() || e.isBaseline() ||
			e.isChanges()
	}
	if !slices.ContainsFunc(list, isStatement) {
		return list, nil
	}
	for i := range list {
		if list[i].isRollback() {
			rollbacks = append(rollbacks, list[i])
		}
	}
	return slices.DeleteFunc(slices.Clone(list), isStatement), rollbacks
}

// lastRollbacks returns the last of the statements for each environment that has an effect, in the
// order of the environments. The others are by signers whose deployments to it would not count either.
func (c *Contract) lastRollbacks(
	f *Facts, scopes []scope.Scope, statements []Evidence, now ledger.Time,
) (last []rollback) {
	for i := range statements {
		e := &statements[i]
		environment, _ := ledger.RollbackOf(e.Predicate, e.PredicateType)
		d := e.deployment(environment)
		if c.isDeployment(&d) && !c.isDeployer(scopes, &d, nil) {
			continue
		}

		r := rollback{Evidence: e, environment: environment, deployment: d}
		r.exception = c.Exceptions.inForce(f.Exceptions, e.Predicate, now)
		n := slices.IndexFunc(last, func(other rollback) bool { return other.environment == environment })
		switch {
		case n < 0:
			last = append(last, r)
		case e.Attestation > last[n].Attestation:
			last[n] = r
		}
	}
	slices.SortFunc(last, func(a, b rollback) int { return cmp.Compare(a.environment, b.environment) })
	return last
}

// RollsBack reports whether e, just recorded for a DEPLOYED commit, is a rollback: it
// matches the signers and the predicate of a DEPLOYED requirement that applies, and has
// a status that the requirement does not accept, or is of the type ledger.RollbackType. Other
// evidence without an outcome is not a rollback. Nothing but the signers is asked of it: a
// rollback loosens nothing.
func (c Contract) RollsBack(f Facts, e Evidence) bool {
	status := []ledger.Status{e.Status}
	if environment, ok := ledger.RollbackOf(e.Predicate, e.PredicateType); ok {
		e, status = e.deployment(environment), nil
	} else if e.Status == ledger.Recorded {
		return false
	}
	return c.isDeployer(c.scopes(&f), &e, status)
}

// isDeployer reports whether the signer of e matches those of a requirement for DEPLOYED that
// applies, is about e, and accepts none of the statuses.
func (c *Contract) isDeployer(scopes []scope.Scope, e *Evidence, statuses []ledger.Status) bool {
	for i := range c.Requirements {
		r := &c.Requirements[i]
		isAccepted := func(s ledger.Status) bool { return slices.Contains(r.Accept, s) }
		if r.State != ledger.Deployed || !r.isAbout(e) || slices.ContainsFunc(statuses, isAccepted) ||
			!r.isSigner(e.Signer) {
			continue
		}
		if scopes == nil || scopes[i].Excluded == "" {
			return true
		}
	}
	return false
}

// An Effect is what an attestation about an environment does to what runs there.
type Effect int

// The effects. What runs is as it was after the first three.
const (
	NoEffect  Effect = iota
	Refused          // by its signer, it cannot take a commit out of the environment
	Attempted        // it is a deployment that does not count
	Deployed
	TakenBack
	Based // it is a baseline
)

// Effect returns what e does to an environment. required reports whether a DEPLOYED requirement names the
// deployments to it, and isViolation whether e is one of these and does not count.
func (c Contract) Effect(f Facts, e Evidence, required, isViolation bool) Effect {
	switch {
	case e.isBaseline():
		return Based
	case isViolation:
		return Attempted
	case e.Status == ledger.Pass:
		return Deployed
	case e.Status == ledger.Recorded && !e.isRollback():
		return NoEffect // an attempt that failed
	case required && !c.RollsBack(f, e):
		return Refused
	}
	return TakenBack
}

// IsScoped reports whether which requirements apply depends on the commit.
func (c *Contract) IsScoped() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return len(r.Paths)+len(r.Branches) > 0 })
}

// RequiresDeployment reports whether a DEPLOYED requirement names a predicate, or its type.
func (c *Contract) RequiresDeployment(predicate, predicateType string) bool {
	return c.isDeployment(&Evidence{Predicate: predicate, PredicateType: predicateType})
}

// IsReplaced reports whether what runs in an environment was deployed after another commit that finished at
// the given time. Without a time, a deployment is the last.
func IsReplaced(finished, running ledger.Time) bool { return finished != 0 && running > finished }

// CheckBaseline returns CodePredicateNotAllowed if e is a baseline by a signer who may not deploy to its environment:
// the identity may not attest deployments to it, or by the contract they would not count.
func (c Contract) CheckBaseline(f Facts, e Evidence, s *identity.Signer) error {
	environment, ok := ledger.BaselineOf(e.Predicate, e.PredicateType)
	if !ok {
		return nil
	}

	d := e.deployment(environment)
	switch {
	case !s.May.Match(d.Predicate):
		return ledger.Errorf(ledger.CodePredicateNotAllowed,
			"%s may not attest %s: identity %s may not attest %s, and only who deploys to %s sets its baseline (to allow it, "+
				"an admin adds the pattern: ledgerd identity update %s --may '%s,%s')",
			s.DN, e.Predicate, s.Identity, d.Predicate, environment, s.Identity, s.May, d.Predicate)
	case c.isDeployment(&d) && !c.isDeployer(c.scopes(&f), &d, nil):
		return ledger.Errorf(ledger.CodePredicateNotAllowed,
			"by the policy, %s does not deploy to %s, so it sets no baseline there (sign with the key of a deployer, or name "+
				"the signer in the requirement for %s)", s.DN, environment, d.Predicate)
	}
	return nil
}
