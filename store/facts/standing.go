package facts

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// FollowStanding begins or ends to keep the standing of a commit, by what runs now. It is PROMOTABLE until it
// is derived, as it was when the deployment counted.
func (fa *Facts) FollowStanding(t *txn.Tx, s *Commit) error {
	if s.State != ledger.Deployed {
		return nil
	}
	watched, err := IsWatched(t.Reader, s.CommitRow)
	if err != nil || watched == s.KeepsStanding() {
		return err
	}

	s.IsMoved = true
	fa.MarkDirty(s.CommitRow)
	if watched {
		s.Standing, s.PolicyVersion = ledger.Promotable, s.Deriver.Repo.PolicyVersion
		return nil
	}
	s.Standing, s.Expires = ledger.Deployed, 0
	s.NoteFailed(false, t.Now)
	return nil
}

// IsWatched reports whether the standing of a commit in DEPLOYED is to be kept.
func IsWatched(rd txn.Reader, c *CommitRow) (bool, error) {
	if c.Merged&(IsMerged|IsSide) != 0 {
		return true, nil
	}
	return IsRunning(rd, c.ID)
}

// IsRunning reports whether a commit runs in an environment.
func IsRunning(rd txn.Reader, commitID int64) (running bool, err error) {
	if err := rd.Row("SELECT "+Runs("?"), commitID).Scan(&running); err != nil {
		return false, fmt.Errorf("find where the commit runs: %w", err)
	}
	return running, nil
}

// Runs is true of a commit whose deployment to an environment is the latest trusted one. id is an
// expression for its row id. Baselines do not count: only the predicates of deployments are those of environments.
func Runs(id string) string {
	return `
EXISTS (SELECT 1 FROM deployments d /*+index deployments_by_commit*/
  /*+ordered*/ JOIN environments e ON e.predicate_id = d.predicate_id AND e.repo_id = d.repo_id
  /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
WHERE d.commit_id = ` + id + ` AND d.ended_id = 0 AND ` + IsTrusted + ` AND NOT EXISTS (
  SELECT 1 FROM deployments n /*+index deployments_present*/ /*+ordered*/ JOIN attestations a ON a.id = n.attestation_id
  WHERE n.repo_id = d.repo_id AND n.predicate_id = d.predicate_id AND n.ended_id = 0
    AND n.attestation_id > d.attestation_id AND ` + IsTrusted + "))"
}

// WatchAgain has the write watch commits that may run now, or no longer.
func (fa *Facts) WatchAgain(cause ledger.Cause, commits ...int64) {
	for _, id := range commits {
		if id != 0 {
			fa.work.add(id, WorkEntry{Runs: cause})
		}
	}
}
