package store

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// watch begins or ends to keep the standing of a commit, by what runs now. It is PROMOTABLE until it
// is derived, as it was when the deployment counted.
func (t *tx) watch(s *subject) error {
	if s.state != ledger.Deployed {
		return nil
	}
	watched, err := t.isWatched(s.commitRow)
	if err != nil || watched == s.keepsStanding() {
		return err
	}

	s.isMoved = true
	t.markDirty(s.commitRow)
	if watched {
		s.standing, s.policyVersion = ledger.Promotable, s.d.repo.PolicyVersion
		return nil
	}
	s.standing, s.expires = ledger.Deployed, 0
	s.noteFailed(false, t.Now)
	return nil
}

// isWatched reports whether the standing of a commit in DEPLOYED is to be kept.
func (t *tx) isWatched(c *commitRow) (bool, error) {
	if c.merged&isMerged != 0 {
		return true, nil
	}
	return t.isRunning(c.id)
}

// isRunning reports whether a commit runs in an environment.
func (rd reader) isRunning(commitID int64) (running bool, err error) {
	if err := rd.Row("SELECT "+runs("?"), commitID).Scan(&running); err != nil {
		return false, fmt.Errorf("find where the commit runs: %w", err)
	}
	return running, nil
}

// runs is true of a commit whose deployment to an environment is the latest trusted one. id is an
// expression for its row id.
func runs(id string) string {
	return `
EXISTS (SELECT 1 FROM deployments d /*+index deployments_by_commit*/
  /*+ordered*/ JOIN attestations a ON a.id = d.attestation_id
WHERE d.commit_id = ` + id + ` AND d.ended_id = 0 AND ` + isTrusted + ` AND NOT EXISTS (
  SELECT 1 FROM deployments n /*+index deployments_present*/ /*+ordered*/ JOIN attestations a ON a.id = n.attestation_id
  WHERE n.repo_id = d.repo_id AND n.predicate_id = d.predicate_id AND n.ended_id = 0
    AND n.attestation_id > d.attestation_id AND ` + isTrusted + "))"
}

// watchAgain has the write watch commits that may run now, or no longer.
func (t *tx) watchAgain(cause ledger.Cause, commits ...int64) {
	for _, id := range commits {
		if id != 0 {
			t.work.add(id, workEntry{runs: cause})
		}
	}
}
