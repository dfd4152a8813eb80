package facts

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Evidence of a commit may carry to others: to those with the same tree, and to its merges.
// Trees and merged commits have a version, which grows with each change of their evidence. A
// commit is due if the versions of what it inherits are others than when its state was
// derived. So a write does not need to know who inherits.

// inherit notes that new evidence of a commit, which is its latest, may carry to others.
func (fa *Facts) inherit(t *txn.Tx, s *Commit, key LatestKey, row int64, e *policy.Evidence) {
	if !s.IsInherited() {
		return
	}
	if s.TreeID != 0 {
		if fa.inherited.latest == nil {
			fa.inherited.latest = make(map[TreeKey]TreeRow)
		}
		stated := e.Status != ledger.Recorded
		fa.inherited.latest[TreeKey{s.TreeID, key.Predicate, key.Slot, key.Signer, stated}] =
			TreeRow{row, s.ID, e.Status.IsFailure()}
		s.Versions++ // the commit takes this change into account now
	}
	fa.InheritChanged(t, s.Deriver, s.CommitRow, ledger.Cause{Type: ledger.CauseCarry, ID: e.Attestation})
}

// InheritChanged makes the commits that inherit from a commit due.
func (fa *Facts) InheritChanged(t *txn.Tx, d *Deriver, c *CommitRow, cause ledger.Cause) {
	j := backlog.Job{Repo: d.Repo.ID, Org: d.Repo.OrgID, Cause: cause, Since: t.Now, NotBefore: t.Now}
	if c.TreeID != 0 {
		j.Task, j.Ref = backlog.Tree, c.TreeID
		countChange(&fa.inherited.trees, j.Ref)
		fa.jobs.Buffer(j)
	}
	if c.Merged&IsMerged != 0 {
		fa.sideChanged(j, c)
	}
}

// sideChanged makes the merges due whose claims name a commit. j is the job without its task.
func (fa *Facts) sideChanged(j backlog.Job, c *CommitRow) {
	j.Task, j.Ref = backlog.Merges, c.ID
	countChange(&fa.inherited.sources, j.Ref)
	fa.jobs.Buffer(j)
}

// KeepMet stores what a commit of the mainline meets, which claims of merges name. If that has changed, their commits
// become due.
func (fa *Facts) KeepMet(t *txn.Tx, s *Commit, cause ledger.Cause) error {
	if s.Merged&IsSide == 0 || len(s.Unevaluated) > 0 {
		return nil // what is not evaluated yet must not cost what is met
	}
	met := s.Deriver.Contract.Met(s.Facts).Encode()
	changed, err := t.Exec("UPDATE merge_sides SET met = ?1 WHERE commit_id = ?2 AND met <> ?1", met, s.ID)
	if err != nil {
		return fmt.Errorf("store what a commit meets: %w", err)
	}
	if changed == 0 {
		return nil
	}
	fa.sideChanged(backlog.Job{
		Repo: s.RepoID, Org: s.Deriver.Repo.OrgID, Cause: cause, Since: t.Now, NotBefore: t.Now,
	}, s.CommitRow)
	return nil
}

// MaxTreeCommits limits the commits of a tree between which evidence carries. Others stand
// for themselves.
const MaxTreeCommits = 10_000

// JoinTree has evidence carry between a commit, whose tree was just proven, and others with
// the same tree.
func (fa *Facts) JoinTree(t *txn.Tx, d *Deriver, c *CommitRow) error {
	cause := ledger.Cause{Type: ledger.CauseCommit, ID: c.SHA}
	fa.InheritChanged(t, d, c, cause) // its merges know its authors now
	var other, tree int64
	found := false
	err := t.Each(func(row txn.Scanner) error {
		found = true
		return row.Scan(&other, &tree)
	}, "SELECT id, tree_id FROM commits WHERE repo_id = ? AND tree = ? AND id <> ? ORDER BY id LIMIT 1",
		d.Repo.ID, c.Tree, c.ID)
	if err != nil || !found {
		return err
	}

	if tree == 0 {
		if tree, err = t.Insert("INSERT INTO trees (version, commits) VALUES (1, 1)"); err != nil {
			return fmt.Errorf("insert tree: %w", err)
		}
		if err := joinOne(t, tree, other); err != nil {
			return err
		}
	}
	commits := 0
	if err := t.Row("SELECT commits FROM trees WHERE id = ?", tree).Scan(&commits); err != nil {
		return fmt.Errorf("read tree: %w", err)
	}
	if commits >= MaxTreeCommits {
		return nil
	}

	if err := joinOne(t, tree, c.ID); err != nil {
		return err
	}
	c.TreeID = tree
	_, err = t.Exec("UPDATE trees SET commits = commits + 1 WHERE id = ?", tree)
	fa.InheritChanged(t, d, c, cause)
	return err
}

// joinOne adds a commit and its evidence to a tree.
func joinOne(t *txn.Tx, tree, commit int64) error {
	if _, err := t.Exec("UPDATE commits SET tree_id = ? WHERE id = ?", tree, commit); err != nil {
		return fmt.Errorf("join a tree: %w", err)
	}
	_, err := t.Exec(insertTreeLatest+"c.id = ?"+updateTreeLatest, commit)
	if err != nil {
		return fmt.Errorf("add evidence to a tree: %w", err)
	}
	return nil
}

const (
	// SelectTreeLatest selects the rows of the table tree_latest to which the evidence of commits leads.
	// Of several with one key, that of the newest attestation counts.
	SelectTreeLatest = `
SELECT c.tree_id, l.predicate_id, l.slot, l.signer_id, CASE a.status WHEN 'recorded' THEN 0 ELSE 1 END,
  l.attestation_id, l.commit_id, CASE WHEN a.status IN ('fail', 'error') THEN 1 ELSE 0 END
FROM commits c /*+ordered*/ JOIN latest l ON l.commit_id = c.id
  /*+ordered*/ JOIN attestations a ON a.id = l.attestation_id
WHERE c.tree_id > 0 AND `
	insertTreeLatest = `
INSERT INTO tree_latest (tree_id, predicate_id, slot, signer_id, stated, attestation_id, commit_id, failed)` +
		SelectTreeLatest
	updateTreeLatest = `
ON CONFLICT (tree_id, predicate_id, slot, signer_id, stated) DO UPDATE SET attestation_id = excluded.attestation_id,
  commit_id = excluded.commit_id, failed = excluded.failed
WHERE excluded.attestation_id > tree_latest.attestation_id`
)

// RecountTree finds the latest evidence of a tree again, after that of one of its commits
// has changed for a key.
func RecountTree(t *txn.Tx, tree int64, key LatestKey) error {
	_, err := t.Exec("DELETE FROM tree_latest WHERE tree_id = ? AND predicate_id = ? AND slot = ? AND signer_id = ?",
		tree, key.Predicate, key.Slot, key.Signer)
	if err != nil {
		return fmt.Errorf("delete the latest of a tree: %w", err)
	}
	_, err = t.Exec(insertTreeLatest+"c.tree_id = ? AND l.predicate_id = ? AND l.slot = ? AND l.signer_id = ?"+
		updateTreeLatest, tree, key.Predicate, key.Slot, key.Signer)
	if err != nil {
		return fmt.Errorf("find the latest of a tree: %w", err)
	}
	return nil
}

// RemapInherited updates what commits inherit after the evidence of a commit was mapped to
// another key.
func (fa *Facts) RemapInherited(t *txn.Tx, cause ledger.Cause, before, after LatestKey) error {
	c, err := FindCommitRow(t.Reader, after.Commit)
	if err != nil || !c.IsInherited() {
		return err
	}
	d, err := fa.DeriverByID(t.Reader, c.RepoID)
	if err != nil {
		return err
	}
	fa.InheritChanged(t, d, c, cause)
	if c.TreeID == 0 {
		return nil
	}
	if err := RecountTree(t, c.TreeID, before); err != nil {
		return err
	}
	return RecountTree(t, c.TreeID, after)
}

// InheritedCause returns why a commit is due because of what it inherits.
func InheritedCause(rd txn.Reader, s *Commit) (cause ledger.Cause, err error) {
	cause = ledger.Cause{Type: ledger.CauseCarry}
	err = rd.Each(func(row txn.Scanner) error { return row.Scan(&cause.Type, &cause.ID) }, `
SELECT cause_type, cause_id FROM backlog WHERE repo_id = ?3 AND kind = 'tree' AND ref = ?1
UNION ALL
SELECT b.cause_type, b.cause_id FROM merges m
  JOIN backlog b ON b.repo_id = ?3 AND b.kind = 'merges' AND b.ref IN (m.source_id, m.parent_id)
WHERE m.commit_id = ?2
UNION ALL
SELECT cause_type, cause_id FROM backlog WHERE repo_id = ?3 AND kind = 'settle' AND ref = 0 AND cause_type = 'identity'
LIMIT 1`, s.TreeID, s.ID, s.RepoID)
	if err != nil {
		return cause, fmt.Errorf("read why inherited evidence changed: %w", err)
	}
	return cause, nil
}
