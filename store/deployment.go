package store

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// recordDeployment notes what an attestation that was just recorded says of an environment.
// The judgement decides whether a deployment counts. A pass for a predicate that no DEPLOYED
// requirement names counts too, and any other outcome of it is a rollback.
func (t *tx) recordDeployment(s *subject, j judgement) error {
	if _, ok := ledger.EnvironmentOf(j.evidence.Predicate); !ok {
		return nil
	}

	required := slices.ContainsFunc(s.d.contract.Requirements, func(r policy.Requirement) bool {
		return r.State == ledger.Deployed && r.Names(j.evidence.Predicate, j.evidence.PredicateType)
	})
	switch status := j.evidence.Status; {
	case j.note != nil:
		t.changeEnvironment(s, j.predicateID)
	case status == ledger.Pass:
		if t.deployed == nil {
			t.deployed = make(map[deploymentKey]deployed)
		}
		t.deployed[deploymentKey{s.repoID, j.predicateID, s.id}] = deployed{s.newest, required}
		t.changeEnvironment(s, j.predicateID)
	case status != ledger.Recorded && (!required || s.d.contract.RollsBack(s.facts, j.evidence)):
		return t.endDeployment(s, j.predicateID)
	}
	return nil
}

// changeEnvironment notes that the attestation recorded last is about an environment.
func (t *tx) changeEnvironment(s *subject, predicateID int64) {
	if t.environments == nil {
		t.environments = make(map[environmentKey]environmentChange)
	}
	t.environments[environmentKey{predicateID, s.repoID}] = environmentChange{s.d.repo.orgID, s.newest}
}

// endDeployment rolls back the deployment of a commit, if it has one.
func (t *tx) endDeployment(s *subject, predicateID int64) error {
	if err := t.flush(); err != nil {
		return err
	}
	n, err := t.Exec(`
UPDATE deployments SET ended_id = ? WHERE repo_id = ? AND predicate_id = ? AND commit_id = ? AND ended_id = 0`,
		s.newest, s.repoID, predicateID, s.id)
	if err != nil {
		return fmt.Errorf("roll back deployment: %w", err)
	}
	if n > 0 {
		t.changeEnvironment(s, predicateID)
	}
	return nil
}
