package states

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// FillGaps has the background derive the states for which an object was not known, if there are any, after a write has
// stored one.
func (st *States) FillGaps(t *txn.Tx, r txn.Repo) error {
	_, err := txn.ScanID(t.Row("SELECT id FROM commits WHERE repo_id = ? AND gap = 1 LIMIT 1", r.ID))
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find commits with a gap: %w", err)
	}
	st.jobs.Buffer(backlog.Job{
		Repo: r.ID, Task: backlog.Gaps, Org: r.OrgID, Cause: ledger.Cause{Type: ledger.CauseCommit}, Since: t.Now,
		NotBefore: t.Now,
	})
	return nil
}

// SettleGaps settles the newest commits of a repo for whose state an object was not known.
func (st *States) SettleGaps(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	commits, err := txn.All(t.Reader, facts.ScanCommitRow, facts.SelectCommitRow+`
WHERE id > ?3 AND id IN (
  SELECT id FROM commits WHERE repo_id = ?1 AND gap = 1 AND state <> ?5 ORDER BY id DESC LIMIT ?2)
ORDER BY id LIMIT ?4`, j.Repo, ancestry.MaxGaps, j.Position, MaxSettled, ledger.Deployed)
	if err != nil {
		return false, fmt.Errorf("read commits with a gap: %w", err)
	}
	if commits, err = firstCommits(t, commits); err != nil || len(commits) == 0 {
		return err == nil, err
	}
	j.Position = commits[len(commits)-1].ID

	list, err := st.commitsOf(t, commits)
	if err != nil {
		return false, err
	}
	if err := st.facts.Gather(t.Reader, list); err != nil {
		return false, err
	}
	for _, s := range list {
		if s.IsHistory() || s.PolicyVersion != s.Deriver.Repo.PolicyVersion {
			continue // a policy has a job of its own
		}
		if err := st.SettleCommit(t, s, ledger.Cause{Type: ledger.CauseCommit, ID: s.SHA}); err != nil {
			return false, err
		}
	}
	return false, nil
}
