package states

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// RepairWindow is the number of attestations of which one read finds the distrusted.
	RepairWindow = 500
	// repairBatch is the number of rows that one write puts right.
	repairBatch = 100
	// repairTree is the number of commits of a tree that cost as much as one row.
	repairTree = 20
)

// A Repair puts a row of the table latest right: the attestation By takes the place of the
// distrusted one, or none if it is 0.
type Repair struct {
	facts.DistrustedRow
	By int64
	// TreeCommits is the number of commits with the same tree; 0 if there are no others.
	TreeCommits int64
}

// A DistrustedWindow is what the next attestations of a repo say of an identity. All reads but these find
// what replaces its evidence each time they need it.
type DistrustedWindow struct {
	// Distrusts is how often evidence of the org was distrusted when the window was read.
	Distrusts int64
	Commits   []int64 // with evidence by the identity
	Position  int64   // the last attestation
	isEnd     bool    // there are no more
}

// ReplaceDistrusted replaces the next evidence of a distrusted identity in the table latest. It searches outside
// the writer.
func (st *States) ReplaceDistrusted(ctx context.Context, j *backlog.Job) error {
	from := j.Position
	w := DistrustedWindow{Position: from}
	for begun := time.Now(); len(w.Commits) == 0 && !w.isEnd && time.Since(begun) < backlog.TurnTime; {
		if err := st.NextDistrusted(ctx, j, &w); err != nil {
			return fmt.Errorf("find distrusted evidence: %w", err)
		}
	}

	for _, commit := range w.Commits {
		list, err := st.FindRepairs(ctx, commit)
		if err != nil {
			return err
		}
		for len(list) > 0 {
			batch := list[:firstRepairs(list)]
			list = list[len(batch):]
			if err := st.ApplyRepairs(ctx, j, from, DistrustedWindow{w.Distrusts, nil, from, false}, batch); err != nil {
				return err
			}
		}
	}
	return st.ApplyRepairs(ctx, j, from, w, nil)
}

// NextDistrusted reads the next attestations of a repo.
func (st *States) NextDistrusted(ctx context.Context, j *backlog.Job, w *DistrustedWindow) error {
	_, err := txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) (struct{}, error) {
		var since, at ledger.Time
		var identity string
		err := rd.Row(`
SELECT i.identity_id, i.distrusted_since, o.distrusts,
  coalesce((SELECT recorded_at FROM attestations WHERE id = ?), 0)
FROM identities i JOIN orgs o ON o.id = i.org_id WHERE i.id = ?`, w.Position, j.Ref).
			Scan(&identity, &since, &w.Distrusts, &at)
		if err != nil {
			return struct{}{}, fmt.Errorf("read identity: %w", err)
		}

		n := 0
		err = rd.Each(func(row txn.Scanner) error {
			n++
			var commit int64
			var isIts bool
			err := row.Scan(&w.Position, &commit, &isIts)
			if isIts && !slices.Contains(w.Commits, commit) {
				w.Commits = append(w.Commits, commit)
			}
			return err
		}, `
SELECT id, commit_id, identity_id = ? FROM attestations /*+index attestations_by_time*/
WHERE repo_id = ? AND (recorded_at, id) > (?, ?) ORDER BY recorded_at, id LIMIT ?`,
			identity, j.Repo, max(at, since-1), w.Position, RepairWindow)
		w.isEnd = n < RepairWindow
		return struct{}{}, err
	})
	return err
}

// FindRepairs finds what replaces the distrusted evidence of a commit. Each of its reads
// examines a bounded number of attestations, because a commit may have any number.
func (st *States) FindRepairs(ctx context.Context, commit int64) ([]Repair, error) {
	list, err := txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) ([]facts.DistrustedRow, error) {
		rows, err := facts.DistrustedLatest(rd, []any{commit})
		return rows[commit], err
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := facts.NewRetracing(commit, list)
	for last := false; !last; {
		last, err = txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) (bool, error) {
			return r.Next(rd, facts.MaxRetraced)
		})
		if err != nil {
			return nil, err
		}
	}

	treeCommits, err := txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) (commits int64, err error) {
		return commits, rd.Each(func(row txn.Scanner) error { return row.Scan(&commits) },
			"SELECT t.commits FROM commits c JOIN trees t ON t.id = c.tree_id WHERE c.id = ?", commit)
	})
	repairs := make([]Repair, len(list))
	for i, l := range list {
		repairs[i] = Repair{l, r.Found[l.LatestKey].ID, treeCommits}
	}
	return repairs, err
}

// firstRepairs returns how many of the rows one write puts right. Each costs as much as its
// tree has commits.
func firstRepairs(list []Repair) int {
	cost := int64(0)
	for i, r := range list {
		if cost += 1 + r.TreeCommits/repairTree; i > 0 && cost > repairBatch {
			return i
		}
	}
	return len(list)
}

// ApplyRepairs puts rows of the table latest right, and saves the position and whether the window was the last. It
// does nothing if evidence was distrusted since the rows were found, so that they may be wrong.
func (st *States) ApplyRepairs(ctx context.Context, j *backlog.Job, from int64, w DistrustedWindow,
	list []Repair) error {
	return st.jobs.Advance(ctx, j, func(t *txn.Tx, j *backlog.Job) (done bool, err error) {
		var distrusts int64
		err = t.Row("SELECT distrusts FROM orgs WHERE id = ?", j.Org).Scan(&distrusts)
		if err != nil || distrusts != w.Distrusts || j.Position != from {
			return false, err
		}
		for _, r := range list {
			if err := facts.ReplaceLatest(t, r.DistrustedRow, r.By); err != nil {
				return false, fmt.Errorf("replace distrusted evidence: %w", err)
			}
		}
		j.Position = w.Position
		if !w.isEnd || j.Again {
			return w.isEnd, nil
		}
		return true, st.endDistrust(t, j)
	})
}

// endDistrust notes that the table latest has no evidence of a repo any more that is distrusted because of an
// identity. The commits are settled again, in case some were settled before.
func (st *States) endDistrust(t *txn.Tx, j *backlog.Job) error {
	_, err := t.Exec(`
UPDATE orgs SET distrusting = CASE WHEN EXISTS (
  SELECT 1 FROM backlog WHERE org_id = orgs.id AND kind = 'distrust' AND NOT (repo_id = ? AND ref = ?))
  THEN 1 ELSE 0 END
WHERE id = ?`, j.Repo, j.Ref, j.Org)
	if err != nil {
		return fmt.Errorf("note that distrusted evidence is replaced: %w", err)
	}
	r, err := t.RepoByID(j.Repo)
	if err != nil || r.Deleted {
		return err
	}
	return st.jobs.Later(t, r.ID, backlog.Settle, 0, j.Cause)
}
