package states

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// closedAtOnce is the number of violations that an attestation closes in its own write.
// The background closes the others, so that other writes do not wait for a large number.
const closedAtOnce = 50

// A closing says how open violations are closed: those of a predicate, in the repo or on one commit.
type closing struct {
	repo        txn.Repo
	predicateID int64
	at          ledger.Time
	how         ledger.ClosingType
	by          string
}

// closeViolations closes the open violations of a predicate in a repo.
func (st *States) closeViolations(t *txn.Tx, c closing) error {
	if err := t.Flush(); err != nil {
		return err
	}
	after, err := closedUpTo(t, c.repo.ID, c.predicateID, 0)
	if err != nil {
		return err
	}
	scanOne := func(row txn.Scanner) (txn.Keyed[ledger.Violation], error) { return st.ScanViolation(t.Reader, row) }
	list, err := txn.All(t.Reader, scanOne, SelectViolation+`
FROM violations v /*+index violations_open*/`+JoinViolation+`
WHERE v.repo_id = ? AND v.predicate_id = ? AND v.closed_at = 0 AND v.id > ? ORDER BY v.id LIMIT ?`,
		c.repo.ID, c.predicateID, after, closedAtOnce+1)
	if err != nil {
		return fmt.Errorf("read violations: %w", err)
	}

	if len(list) > closedAtOnce {
		list = list[:closedAtOnce]
		var upTo int64
		err := t.Row("SELECT max(id) FROM violations /*+index violations_open*/"+
			" WHERE repo_id = ? AND predicate_id = ? AND closed_at = 0", c.repo.ID, c.predicateID).Scan(&upTo)
		if err != nil {
			return fmt.Errorf("find the last violation: %w", err)
		}
		if err := st.jobs.AddMissing(t, []backlog.Job{c.job(backlog.Close, upTo)}); err != nil {
			return err
		}
	}
	return st.closeAll(t, c, list)
}

// closedUpTo returns the row id up to which the violations of a predicate and a commit are
// closed, even if they are not marked as closed yet.
func closedUpTo(t *txn.Tx, repoID, predicateID, commitID int64) (id int64, err error) {
	err = t.Row(`
SELECT coalesce(max(v.id), 0) FROM backlog b /*+ordered*/ JOIN violations v ON v.id = b.ref
WHERE b.repo_id = ? AND b.kind IN ('close', 'excuse') AND v.predicate_id = ?
  AND (b.kind = 'close' OR v.commit_id = ?)`, repoID, predicateID, commitID).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read what is to be closed: %w", err)
	}
	return id, nil
}

// job returns the job that closes the violations up to one.
func (c *closing) job(kind backlog.Task, upTo int64) backlog.Job {
	return backlog.Job{
		Repo: c.repo.ID, Task: kind, Ref: upTo, Org: c.repo.OrgID, Since: c.at, NotBefore: c.at,
		Cause: ledger.Cause{Type: ledger.CauseType(c.how), ID: c.by},
	}
}

// closeExcused closes the open violations of a commit for whose requirement the exception
// that was just recorded stands in.
func (st *States) closeExcused(t *txn.Tx, s *facts.Commit, c closing) error {
	excused := s.Deriver.Contract.Excused(s.Facts, t.Now, c.by)
	if len(excused) == 0 {
		return nil
	}
	open, err := st.openViolations(t, s.ID)
	if err != nil {
		return err
	}

	var list []txn.Keyed[ledger.Violation]
	var later []backlog.Job
	for _, v := range open {
		d := policy.Evidence{Attestation: v.Row.Attestation, Predicate: v.Row.Predicate, PredicateType: v.predicateType,
			Status: ledger.Pass}
		switch contract := s.Deriver.Contract; {
		case !contract.Excuses(excused, s.Facts, d):
		case len(list) < closedAtOnce:
			list = append(list, v.Keyed)
		case !contract.Delivers(&d): // a job closes all of a predicate
			later = append(later, c.job(backlog.Excuse, v.ID))
		}
	}
	if err := st.jobs.AddMissing(t, later); err != nil {
		return err
	}
	return st.closeAll(t, c, list)
}

// A violationRow is an open violation with its predicate.
type violationRow struct {
	txn.Keyed[ledger.Violation]
	predicateID   int64
	predicateType string
}

// openViolations reads the open violations of a commit.
func (st *States) openViolations(t *txn.Tx, commitID int64) ([]violationRow, error) {
	if err := t.Flush(); err != nil {
		return nil, err
	}
	list, err := txn.All(t.Reader, func(row txn.Scanner) (v violationRow, err error) {
		var typeID int64
		if v.Keyed, err = st.ScanViolation(t.Reader, row, &typeID, &v.predicateID); err != nil {
			return v, err
		}
		v.predicateType, err = st.signers.PredicateType(t.Reader, typeID)
		return v, err
	}, SelectViolation+", a.type_id, v.predicate_id FROM violations v /*+index violations_open_by_commit*/"+
		JoinViolation+" WHERE v.commit_id = ? AND v.closed_at = 0 LIMIT ?", commitID, ledger.MaxOpenViolations)
	if err != nil {
		return nil, fmt.Errorf("read violations: %w", err)
	}
	return list, nil
}

// closeAll marks open violations of a repo as closed.
func (st *States) closeAll(t *txn.Tx, c closing, list []txn.Keyed[ledger.Violation]) error {
	for _, v := range list {
		_, err := t.Exec("UPDATE violations SET closed_at = ?, closed_how = ?, closed_by = ? WHERE id = ?",
			c.at, string(c.how), c.by, v.ID)
		if err != nil {
			return fmt.Errorf("close violation: %w", err)
		}
		if c.how == ledger.ClosedByException {
			if err := makeGood(t, v); err != nil {
				return err
			}
		}
		v.Row.Status, v.Row.ClosedBy = ledger.ViolationClosed, &ledger.Closing{Type: c.how, ID: c.by}
		if err := st.journal.AppendViolation(t, c.repo, v.Row); err != nil {
			return err
		}
	}
	st.countOpen(c.repo, -int64(len(list)))
	return nil
}

// makeGood makes the deployment of a violation count, because an exception stands in for
// what it lacked.
func makeGood(t *txn.Tx, v txn.Keyed[ledger.Violation]) error {
	if _, ok := ledger.EnvironmentOf(v.Row.Predicate); !ok {
		return nil
	}
	_, err := t.Exec(`
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required)
SELECT repo_id, predicate_id, commit_id, attestation_id, 1 FROM violations WHERE id = ?
ON CONFLICT (repo_id, predicate_id, commit_id) DO UPDATE SET attestation_id = excluded.attestation_id,
  required = excluded.required, ended_id = 0 WHERE excluded.attestation_id > deployments.attestation_id`, v.ID)
	if err != nil {
		return fmt.Errorf("make the deployment count: %w", err)
	}
	return nil
}

// countOpen adds n to the number of open violations of a repo and its org.
func (st *States) countOpen(r txn.Repo, n int64) {
	st.facts.Count(facts.OpenOfRepo, r.ID, n)
	st.facts.Count(facts.OpenOfOrg, r.OrgID, n)
}

// CloseNext closes the next violations of a job.
func (st *States) CloseNext(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	c := closing{at: j.Since, how: ledger.ClosingType(j.Cause.Type), by: j.Cause.ID}
	if c.repo, err = t.RepoByID(j.Repo); err != nil {
		return false, err
	}
	var commit int64
	err = t.Row("SELECT predicate_id, commit_id FROM violations WHERE id = ?", j.Ref).Scan(&c.predicateID, &commit)
	if err != nil {
		return false, fmt.Errorf("read the last violation: %w", err)
	}

	from, where, of := "violations_open*/", "v.repo_id = ?", j.Repo
	if j.Task == backlog.Excuse {
		from, where, of = "violations_open_by_commit*/", "v.commit_id = ?", commit
	}
	scanOne := func(row txn.Scanner) (txn.Keyed[ledger.Violation], error) { return st.ScanViolation(t.Reader, row) }
	list, err := txn.All(t.Reader, scanOne, SelectViolation+" FROM violations v /*+index "+from+JoinViolation+
		" WHERE "+where+" AND v.predicate_id = ? AND v.closed_at = 0 AND v.id <= ? ORDER BY v.id LIMIT ?",
		of, c.predicateID, j.Ref, closedAtOnce)
	if err != nil {
		return false, fmt.Errorf("read violations: %w", err)
	}
	return len(list) < closedAtOnce, st.closeAll(t, c, list)
}
