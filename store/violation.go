package store

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// A judgement says what a new attestation means for the violations of its repo. It is made
// before the attestation has any effect on the state of its commit.
type judgement struct {
	environment environmentNote
	evidence    policy.Evidence
	state       ledger.State          // of the commit
	note        *ledger.ViolationNote // nil if the attestation is no violation
	// closes is how the attestation closes violations, or empty if it does not. A rollback of
	// a commit that was not deployed closes some only if the commit has an open one.
	closes      ledger.ClosingType
	wasDeployed bool
}

// judge judges an attestation whose evidence is already among the facts of its commit.
func judge(s *subject, n environmentNote, e policy.Evidence, wasDeployed bool) judgement {
	j := judgement{environment: n, evidence: e, state: s.state, wasDeployed: wasDeployed}
	switch contract := s.d.contract; {
	case contract.IsDeployment(e):
		j.closes = ledger.ClosedByDeployment
		if missing, ok := contract.Violation(s.facts, e, e.RecordedAt); ok {
			j.note, j.closes = &ledger.ViolationNote{Missing: missing}, ""
		}
	case s.d.repo.Violated && contract.RollsBack(s.facts, e):
		j.closes = ledger.ClosedByRollback
	}
	return j
}

// recordViolations opens or closes violations, after an attestation was recorded.
func (t *tx) recordViolations(s *subject, j judgement) error {
	if j.note != nil {
		return t.openViolation(s, j)
	}
	if !s.d.repo.Violated {
		return nil
	}

	c := closing{repo: s.d.repo, predicateID: j.environment.predicateID, at: t.Now, how: j.closes,
		by: j.evidence.Attestation}
	if c.how == ledger.ClosedByRollback && !j.wasDeployed {
		if isOpen, err := t.hasViolation(s, j.environment.predicateID); err != nil || !isOpen {
			return err
		}
	}
	if c.how != "" {
		return t.closeViolations(c)
	}
	if ledger.ReservedPrefix(j.evidence.Predicate) == exceptionPrefix {
		c.how = ledger.ClosedByException
		return t.closeExcused(s, c)
	}
	return nil
}

// exceptionPrefix begins the predicates of exceptions.
const exceptionPrefix = "exception:"

// openViolation adds a violation, unless one of the same commit and predicate is open.
func (t *tx) openViolation(s *subject, j judgement) error {
	if s.d.repo.Violated {
		if isOpen, err := t.hasViolation(s, j.environment.predicateID); err != nil || isOpen {
			return err
		}
	}
	id, err := t.kernel.NextRow("violations")
	if err != nil {
		return err
	}
	missing, err := json.Marshal(j.note.Missing)
	if err != nil {
		return fmt.Errorf("encode violation: %w", err)
	}
	t.batch.rows.violations.Add(id, s.repoID, s.d.repo.OrgID, s.id, j.environment.predicateID, s.newest, int64(j.state),
		int64(t.Now), string(missing))

	s.d.repo.Violated = true
	t.count(orgViolations, s.d.repo.OrgID, 1)
	t.countOpen(s.d.repo, 1)
	return t.s.Journal.AppendViolation(t.kernel, s.d.repo, ledger.Violation{
		Commit: s.sha, Predicate: j.evidence.Predicate, Identity: j.evidence.Signer.String(),
		Attestation: j.evidence.Attestation, State: j.state, Missing: j.note.Missing, Status: ledger.ViolationOpened,
	})
}

// hasViolation reports whether a commit has an open violation of a predicate.
func (t *tx) hasViolation(s *subject, predicateID int64) (isOpen bool, err error) {
	if err := t.kernel.Flush(); err != nil {
		return false, err
	}
	closed, err := t.closedUpTo(s.repoID, predicateID, s.id)
	if err != nil {
		return false, err
	}
	err = t.Row(`
SELECT EXISTS (SELECT 1 FROM violations WHERE commit_id = ? AND predicate_id = ? AND closed_at = 0 AND id > ?)`,
		s.id, predicateID, closed).Scan(&isOpen)
	if err != nil {
		return false, fmt.Errorf("find violation: %w", err)
	}
	return isOpen, nil
}
