package store

import (
	"database/sql"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
)

// findOrAddCommit returns a commit of the deriver's repo, and whether it is new.
func (t *tx) findOrAddCommit(d *deriver, sha string) (c *commitRow, created bool, err error) {
	c, err = scanCommitRow(t.Row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", d.repo.ID, sha))
	if !errors.Is(err, sql.ErrNoRows) {
		return c, false, err
	}
	s, err := t.addCommit(d, sha)
	if err != nil {
		return nil, false, err
	}
	return s.commitRow, true, nil
}

// addCommit adds a new commit to the deriver's repo.
func (t *tx) addCommit(d *deriver, sha string) (*subject, error) {
	id, err := t.kernel.NextRow("commits")
	if err != nil {
		return nil, err
	}
	c := &commitRow{
		id: id, repoID: d.repo.ID, sha: sha, state: ledger.Draft, stateSince: t.Now, registeredAt: t.Now,
		policyVersion: d.repo.PolicyVersion, basis: d.repo.Distrusted(), isNew: true,
		standing: ledger.Deployed,
	}
	t.markDirty(c)
	t.countState(d.repo.ID, c.state, 1)
	f := d.factsOf(&facts.Commit{ID: sha})
	f.RegisteredAt = c.registeredAt
	return &subject{commitRow: c, d: d, facts: f, versions: d.repo.Distrusted()}, nil
}
