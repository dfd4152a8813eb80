package record

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
)

// recordDeployment notes what an attestation that was just recorded says of an environment. predicateID is the row of
// its predicate. The judgement decides whether a deployment counts. A pass for a predicate that no DEPLOYED requirement
// names counts too, and any other outcome of it is a rollback.
func (re *Recorder) recordDeployment(
	t *txn.Tx, s *facts.Commit, r *Recording, j states.Judgement, predicateID int64,
) error {
	if j.Environment.Name == "" {
		return nil
	}

	switch s.Deriver.Contract.Effect(s.Facts, j.Evidence, j.Environment.Required, j.Note != nil) {
	case policy.Attempted:
		re.changeEnvironment(s, j.Environment.PredicateID)
	case policy.Deployed:
		return re.deploy(t, s, r, j)
	case policy.TakenBack:
		return re.rollBack(t, s, r, j)
	case policy.Based:
		return re.setBaseline(t, s, r, j, predicateID)
	case policy.Refused:
		if j.Environment.IsRollback {
			r.Record.Notice = "it has no effect: by the policy, " + r.Identity + " does not deploy to " + j.Environment.Name
		}
	case policy.NoEffect:
	}
	return nil
}

// deploy notes that a commit was deployed, unless what runs was deployed after it.
func (re *Recorder) deploy(t *txn.Tx, s *facts.Commit, r *Recording, j states.Judgement) error {
	before, err := whatRuns(t, s.RepoID, j.Environment.PredicateID)
	if err != nil {
		return err
	}
	if finished := r.Attestation.FinishedAt; before.id != s.ID && policy.IsReplaced(finished, before.finishedAt) {
		r.Record.Notice = fmt.Sprintf("it does not change what runs in %s: %s was deployed there later, at %s, and this "+
			"deployment finished at %s", j.Environment.Name, before.sha, before.finishedAt, finished)
		re.facts.WatchAgain(r.cause(), s.ID)
		return deployEarlier(t, s, j)
	}

	re.deploying.deployed[deploymentKey{s.RepoID, j.Environment.PredicateID, s.ID}] = deployed{
		attestation: s.Newest, required: j.Environment.Required,
	}
	if before.id != s.ID {
		re.facts.WatchAgain(r.cause(), before.id)
	}
	if s.IsHistory() {
		re.facts.WatchAgain(r.cause(), s.ID)
	}
	re.changeEnvironment(s, j.Environment.PredicateID)
	return nil
}

// A runningCommit is the commit that runs in an environment; its id is 0 if none does.
type runningCommit struct {
	id         int64
	sha        string
	finishedAt ledger.Time // when it was deployed, by its deployer; 0 if that is not known
}

// whatRuns returns the commit that runs in an environment.
func whatRuns(t *txn.Tx, repoID, predicateID int64) (c runningCommit, err error) {
	if err := t.Flush(); err != nil {
		return c, err
	}
	err = t.Row(`
SELECT c.id, c.sha, a.finished_at
FROM deployments d /*+index deployments_present*/ /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
/*+ordered*/ JOIN commits c ON c.id = d.commit_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.ended_id = 0 AND `+facts.IsTrusted+`
ORDER BY d.attestation_id DESC LIMIT 1`, repoID, predicateID).Scan(&c.id, &c.sha, &c.finishedAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("find what runs: %w", err)
	}
	return c, nil
}

// endedEarlier is in place of the attestation that has ended a deployment, if another deployment
// replaced it before it was recorded. The indexes of what runs and of rollbacks do not have it.
const endedEarlier = -1

// deployEarlier notes a deployment that another one has replaced before it was recorded.
func deployEarlier(t *txn.Tx, s *facts.Commit, j states.Judgement) error {
	_, err := t.Exec(`
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required, ended_id) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (repo_id, predicate_id, commit_id) DO NOTHING`,
		s.RepoID, j.Environment.PredicateID, s.ID, s.Newest, j.Environment.Required, endedEarlier)
	if err != nil {
		return fmt.Errorf("note an earlier deployment: %w", err)
	}
	return nil
}

// changeEnvironment notes that the attestation recorded last is about an environment.
func (re *Recorder) changeEnvironment(s *facts.Commit, predicateID int64) {
	re.deploying.changed[environmentKey{predicateID, s.RepoID}] = environmentChange{s.Deriver.Repo.OrgID, s.Newest}
}

// setBaseline notes that a commit is the baseline of an environment, in place of any before. predicateID is the row of
// the predicate of the baseline.
func (re *Recorder) setBaseline(
	t *txn.Tx, s *facts.Commit, r *Recording, j states.Judgement, predicateID int64,
) error {
	re.deploying.deployed[deploymentKey{s.RepoID, predicateID, s.ID}] = deployed{attestation: s.Newest}
	re.changeEnvironment(s, j.Environment.PredicateID)
	repo := s.Deriver.Repo
	return re.journal.Audit(t, repo.OrgID, repo.Org, events.Audited{
		Action: ledger.AuditBaselineSet, Repo: repo.Name, Target: r.Record.ID, After: []ledger.Field{
			{Name: "commit", Value: r.Record.Commit},
			{Name: "identity", Value: r.Identity},
			{Name: "environment", Value: j.Environment.Name},
			{Name: "reason", Value: events.Optional(r.Record.Reason)},
		},
	})
}

// rollBack ends the deployment of a commit, if it has one, and has the commit run that a
// rollback names.
func (re *Recorder) rollBack(t *txn.Tx, s *facts.Commit, r *Recording, j states.Judgement) error {
	before, err := whatRuns(t, s.RepoID, j.Environment.PredicateID)
	if err != nil {
		return err
	}
	n, err := t.Exec(`
UPDATE deployments SET ended_id = ? WHERE repo_id = ? AND predicate_id = ? AND commit_id = ? AND ended_id = 0`,
		s.Newest, s.RepoID, j.Environment.PredicateID, s.ID)
	if err != nil {
		return fmt.Errorf("roll back deployment: %w", err)
	}

	if n > 0 {
		re.changeEnvironment(s, j.Environment.PredicateID)
		if !j.Environment.IsRollback {
			r.Record.Notice = fmt.Sprintf("it is a rollback: the commit no longer runs in %s (if only an attempt to deploy has "+
				"failed, deploy with ledgerd deploy, or sign the statement with \"rollout\": %q)",
				j.Environment.Name, ledger.RolloutFailed)
		}
	}
	if rollback := r.Attestation.Rollback; rollback != nil && rollback.To.SHA != "" {
		if err := re.resume(t, s, j, rollback.To.SHA); err != nil {
			return err
		}
	}

	after, err := whatRuns(t, s.RepoID, j.Environment.PredicateID)
	if err == nil && after != before {
		re.facts.WatchAgain(r.cause(), before.id, after.id)
	}
	return err
}

// resume has a commit run that was deployed before.
func (re *Recorder) resume(t *txn.Tx, s *facts.Commit, j states.Judgement, sha string) error {
	_, err := t.Exec(`
UPDATE deployments SET attestation_id = ?, ended_id = 0
WHERE repo_id = ? AND predicate_id = ? AND commit_id = (SELECT id FROM commits WHERE repo_id = ? AND sha = ?)`,
		s.Newest, s.RepoID, j.Environment.PredicateID, s.RepoID, sha)
	if err != nil {
		return fmt.Errorf("resume deployment: %w", err)
	}
	re.changeEnvironment(s, j.Environment.PredicateID)
	return nil
}

// checkRollback refuses a rollback to a commit that cannot run in its place: its deployment did
// not count, or was rolled back.
func (re *Recorder) checkRollback(t *txn.Tx, d *facts.Deriver, r *Recording) error {
	rollback := r.Attestation.Rollback
	if rollback == nil || rollback.To.SHA == "" {
		return nil
	}
	if err := t.Flush(); err != nil {
		return err
	}
	predicate := ledger.EnvironmentPredicate(rollback.Environment)
	predicateID, err := re.signers.RowOf(t.Reader, signers.PredicateOf(d.Repo.OrgID, predicate))
	if err != nil {
		return err
	}

	var isUndone bool
	err = t.Row(`
SELECT d.ended_id > 0
FROM commits c JOIN deployments d ON d.commit_id = c.id JOIN attestations a ON a.id = d.attestation_id
WHERE c.repo_id = ? AND c.sha = ? AND d.repo_id = ? AND d.predicate_id = ? AND `+facts.IsTrusted,
		d.Repo.ID, rollback.To.SHA, d.Repo.ID, predicateID).Scan(&isUndone)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		r.Err = ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.to.sha", "no deployment of %s to %s has counted "+
			"(to deploy it, use ledgerd deploy %[2]s)", rollback.To.SHA, rollback.Environment)
	case err != nil:
		return fmt.Errorf("find the deployment: %w", err)
	case isUndone:
		r.Err = ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.to.sha", "%s was rolled back from %s "+
			"(to deploy it, use ledgerd deploy %[2]s --again)", rollback.To.SHA, rollback.Environment)
	}
	return nil
}

// checkNothingRuns refuses a baseline of an environment where a deployment counts: what runs is known.
func (re *Recorder) checkNothingRuns(t *txn.Tx, d *facts.Deriver, r *Recording) error {
	environment, ok := ledger.BaselineOf(r.Attestation.Predicate, r.Attestation.PredicateType)
	if !ok {
		return nil
	}
	predicate := signers.PredicateOf(d.Repo.OrgID, ledger.EnvironmentPredicate(environment))
	predicateID, err := re.signers.RowOf(t.Reader, predicate)
	if err != nil {
		return err
	}
	runs, err := whatRuns(t, d.Repo.ID, predicateID)
	if err == nil && runs.id != 0 {
		r.Err = ledger.FieldErrorf(ledger.CodeInvalidStatement, "predicate.environment", "%s was deployed to %s, and a "+
			"baseline says what runs only where no deployment counts (to take it out, use ledgerd rollback; to record what "+
			"runs, ledgerd deploy %[2]s)", runs.sha, environment)
	}
	return err
}

// replacedDeployment returns the attestation that has changed an environment since a statement
// about it was recorded, if repeating the statement would have another effect now. It is empty
// if not.
func (re *Recorder) replacedDeployment(t *txn.Tx, s *facts.Commit, rec *ledger.AttestationRecord) (by string,
	err error) {
	predicate, isUndoing := rec.Predicate, rec.Result.Status != ledger.Pass
	_, isDeployment := ledger.EnvironmentOf(predicate)
	rolledBack, isRollback := ledger.RollbackOf(predicate, rec.PredicateType)
	_, isBaseline := ledger.BaselineOf(predicate, rec.PredicateType)
	switch {
	case isRollback:
		predicate = ledger.EnvironmentPredicate(rolledBack)
	case isBaseline:
		isUndoing = false
	case !isDeployment || rec.Result.Status == ledger.Recorded:
		return "", nil
	}
	if err := t.Flush(); err != nil {
		return "", err
	}
	predicateID, err := re.signers.RowOf(t.Reader, signers.PredicateOf(s.Deriver.Repo.OrgID, predicate))
	if err != nil {
		return "", err
	}

	var own struct {
		id, endedID int64
		public      string
	}
	err = t.Row(`
SELECT d.attestation_id, d.ended_id, a.attestation_id
FROM deployments d /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.commit_id = ?`, s.RepoID, predicateID, s.ID).
		Scan(&own.id, &own.endedID, &own.public)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && own.endedID == endedEarlier:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("find the deployment: %w", err)
	case isUndoing && own.public > rec.ID: // deployed after it was rolled back
		return own.public, nil
	case isUndoing:
		return "", nil
	}

	by = own.public
	if own.endedID > 0 {
		err = t.Row("SELECT attestation_id FROM attestations WHERE id = ?", own.endedID).Scan(&by)
	} else {
		err = t.Row(`
SELECT a.attestation_id FROM deployments d /*+index deployments_present*/ /*+ordered*/ JOIN attestations a
ON a.id = d.attestation_id
WHERE d.repo_id = ? AND d.predicate_id = ? AND d.ended_id = 0 ORDER BY d.attestation_id DESC LIMIT 1`,
			s.RepoID, predicateID).Scan(&by)
	}
	if err != nil {
		return "", fmt.Errorf("find what has replaced the deployment: %w", err)
	}
	if by == own.public {
		return "", nil
	}
	return by, nil
}
