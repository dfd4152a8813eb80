package states

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Judgement says what a new attestation means for the violations of its repo. It is made
// before the attestation has any effect on the state of its commit.
type Judgement struct {
	Environment environmentNote
	Evidence    policy.Evidence
	state       ledger.State          // of the commit
	Note        *ledger.ViolationNote // nil if the attestation is no violation
	// closes is how the attestation closes violations, or empty if it does not. A rollback of
	// a commit that was not deployed closes some only if the commit has an open one.
	closes      ledger.ClosingType
	wasDeployed bool
}

// Judge judges an attestation whose evidence is already among the facts of its commit.
func Judge(s *facts.Commit, n environmentNote, e policy.Evidence, wasDeployed bool) Judgement {
	j := Judgement{Environment: n, Evidence: e, state: s.State, wasDeployed: wasDeployed}
	switch contract := s.Deriver.Contract; {
	case contract.IsDeployment(e):
		j.closes = ledger.ClosedByDeployment
		if missing, ok := contract.Violation(s.Facts, e, e.RecordedAt); ok {
			j.Note, j.closes = &ledger.ViolationNote{Missing: missing}, ""
		}
	case s.Deriver.Repo.Violated && contract.RollsBack(s.Facts, e):
		j.closes = ledger.ClosedByRollback
	}
	return j
}

// RecordViolations opens or closes violations, after an attestation was recorded.
func (st *States) RecordViolations(t *txn.Tx, s *facts.Commit, j Judgement) error {
	if j.Note != nil {
		return st.openViolation(t, s, j)
	}
	if !s.Deriver.Repo.Violated {
		return nil
	}

	c := closing{repo: s.Deriver.Repo, predicateID: j.Environment.PredicateID, at: t.Now, how: j.closes,
		by: j.Evidence.Attestation}
	if c.how == ledger.ClosedByRollback && !j.wasDeployed {
		if isOpen, err := hasViolation(t, s, j.Environment.PredicateID); err != nil || !isOpen {
			return err
		}
	}
	if c.how != "" {
		return st.closeViolations(t, c)
	}
	if ledger.ReservedPrefix(j.Evidence.Predicate) == exceptionPrefix {
		c.how = ledger.ClosedByException
		return st.closeExcused(t, s, c)
	}
	return nil
}

// exceptionPrefix begins the predicates of exceptions.
const exceptionPrefix = "exception:"

// openViolation adds a violation, unless one of the same commit and predicate is open.
func (st *States) openViolation(t *txn.Tx, s *facts.Commit, j Judgement) error {
	if s.Deriver.Repo.Violated {
		if isOpen, err := hasViolation(t, s, j.Environment.PredicateID); err != nil || isOpen {
			return err
		}
	}
	id, err := t.NextRow("violations")
	if err != nil {
		return err
	}
	missing, err := json.Marshal(j.Note.Missing)
	if err != nil {
		return fmt.Errorf("encode violation: %w", err)
	}
	st.rows.violations.Add(id, s.RepoID, s.Deriver.Repo.OrgID, s.ID, j.Environment.PredicateID, s.Newest, int64(j.state),
		int64(t.Now), string(missing))

	s.Deriver.Repo.Violated = true
	st.facts.Count(facts.OrgViolations, s.Deriver.Repo.OrgID, 1)
	st.countOpen(s.Deriver.Repo, 1)
	return st.journal.AppendViolation(t, s.Deriver.Repo, ledger.Violation{
		Commit: s.SHA, Predicate: j.Evidence.Predicate, Identity: j.Evidence.Signer.String(),
		Attestation: j.Evidence.Attestation, State: j.state, Missing: j.Note.Missing, Status: ledger.ViolationOpened,
	})
}

// hasViolation reports whether a commit has an open violation of a predicate.
func hasViolation(t *txn.Tx, s *facts.Commit, predicateID int64) (isOpen bool, err error) {
	if err := t.Flush(); err != nil {
		return false, err
	}
	closed, err := closedUpTo(t, s.RepoID, predicateID, s.ID)
	if err != nil {
		return false, err
	}
	err = t.Row(`
SELECT EXISTS (SELECT 1 FROM violations WHERE commit_id = ? AND predicate_id = ? AND closed_at = 0 AND id > ?)`,
		s.ID, predicateID, closed).Scan(&isOpen)
	if err != nil {
		return false, fmt.Errorf("find violation: %w", err)
	}
	return isOpen, nil
}
