package policy

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
)

// rolledBack returns the rollbacks that shut gates for the commit: no deployment to their
// environment has counted since, and no exception is in force. They are in the order of the
// environments.
func (v *evaluation) rolledBack() (list []ledger.CommitRollback) {
	for i := range v.rollbacks {
		if r := &v.rollbacks[i]; r.exception == nil && !v.isDeployedAgain(r) {
			list = append(list, r.record())
		}
	}
	return list
}

// isDeployedAgain reports whether a deployment has counted after a rollback.
func (v *evaluation) isDeployedAgain(r *rollback) bool {
	isRequired := v.c.isDeployment(&r.deployment)
	for at := range v.f.Evidence {
		e := &v.f.Evidence[at]
		if !r.isBefore(e) || !e.WhilePromotable {
			continue
		}
		if isRequired && v.hasDeployed(at) || !isRequired && e.Status == ledger.Pass {
			return true
		}
	}
	return false
}

// hasDeployed reports whether the evidence at a position counts for a requirement for DEPLOYED,
// unless a failure blocks that.
func (v *evaluation) hasDeployed(at int) bool {
	for i := range v.c.Requirements {
		d := &v.decisions[i]
		if v.c.Requirements[i].State != ledger.Deployed || !d.applies {
			continue
		}
		if verdict := d.verdicts[at]; verdict.isDeployment() && (verdict != counts || v.isAssignable(i, at)) {
			return true
		}
	}
	return false
}

// isAssignable reports whether the individual of the evidence at a position can be assigned to a
// requirement, apart from the people from whom it must be distinct.
func (v *evaluation) isAssignable(i, at int) bool {
	if len(v.c.Requirements[i].DistinctFrom) == 0 {
		return true
	}
	// As if nobody else counted for the requirement.
	all := slices.Clone(v.can)
	defer func() { v.can = all }()
	for individual := range v.can {
		if individual != v.individuals[at] {
			v.can[individual].Remove(i)
		}
	}
	return v.assign(i, 1) == assign.Found
}

// MayDeploy reports whether e, a deployment that is not part of f, may count although the commit
// was rolled back: an exception is in force, or e says that it deploys the commit again and its
// signer has not rolled it back since it was deployed last. It is true without a rollback.
func (c Contract) MayDeploy(f Facts, e Evidence, again bool, now ledger.Time) bool {
	environment, ok := ledger.EnvironmentOf(e.Predicate)
	if !ok || !HasRollback(f.Evidence) {
		return true
	}
	v := c.evaluate(&f, now)
	n := slices.IndexFunc(v.rollbacks, func(r rollback) bool { return r.environment == environment })
	if n < 0 || v.rollbacks[n].exception != nil || v.isDeployedAgain(&v.rollbacks[n]) {
		return true
	}

	r := &v.rollbacks[n]
	undone := v.lastUndone(r)
	isBySame := func(s Evidence) bool {
		return s.Predicate == r.Predicate && s.sameIndividual(&e) && s.Attestation > undone
	}
	return again && !slices.ContainsFunc(v.statements, isBySame)
}

// lastUndone returns the attestation of the last deployment before a rollback, or "".
func (v *evaluation) lastUndone(r *rollback) (last string) {
	for at := range v.f.Evidence {
		e := &v.f.Evidence[at]
		if r.undoes(e) && e.Status == ledger.Pass && e.WhilePromotable && e.Attestation > last {
			last = e.Attestation
		}
	}
	return last
}
