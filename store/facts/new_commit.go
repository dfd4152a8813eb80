package facts

import (
	"database/sql"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// FindOrAddCommit returns a commit of the deriver's repo, and whether it is new.
func (fa *Facts) FindOrAddCommit(t *txn.Tx, d *Deriver, sha string) (c *CommitRow, created bool, err error) {
	c, err = ScanCommitRow(t.Row(SelectCommitRow+"WHERE repo_id = ? AND sha = ?", d.Repo.ID, sha))
	if !errors.Is(err, sql.ErrNoRows) {
		return c, false, err
	}
	s, err := fa.AddCommit(t, d, sha)
	if err != nil {
		return nil, false, err
	}
	return s.CommitRow, true, nil
}

// AddCommit adds a new commit to the deriver's repo.
func (fa *Facts) AddCommit(t *txn.Tx, d *Deriver, sha string) (*Commit, error) {
	id, err := t.NextRow("commits")
	if err != nil {
		return nil, err
	}
	c := &CommitRow{
		ID: id, RepoID: d.Repo.ID, SHA: sha, State: ledger.Draft, StateSince: t.Now, registeredAt: t.Now,
		PolicyVersion: d.Repo.PolicyVersion, Basis: d.Repo.Distrusted(), isNew: true,
		Standing: ledger.Deployed,
	}
	fa.MarkDirty(c)
	fa.CountState(d.Repo.ID, c.State, 1)
	f := d.factsOf(&facts.Commit{ID: sha})
	f.RegisteredAt = c.registeredAt
	return &Commit{CommitRow: c, Deriver: d, Facts: f, Versions: d.Repo.Distrusted()}, nil
}
