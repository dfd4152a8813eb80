package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// repairWindow is the number of attestations of which one read finds the distrusted.
	repairWindow = 500
	// repairBatch is the number of rows that one write puts right.
	repairBatch = 100
	// repairTree is the number of commits of a tree that cost as much as one row.
	repairTree = 20
)

// A repair puts a row of the table latest right: the attestation by takes the place of the
// distrusted one, or none if it is 0.
type repair struct {
	distrustedRow
	by int64
	// treeCommits is the number of commits with the same tree; 0 if there are no others.
	treeCommits int64
}

// A distrustedWindow is what the next attestations of a repo say of an identity. All reads but these find
// what replaces its evidence each time they need it.
type distrustedWindow struct {
	// distrusts is how often evidence of the org was distrusted when the window was read.
	distrusts int64
	commits   []int64 // with evidence by the identity
	position  int64   // the last attestation
	isEnd     bool    // there are no more
}

// replaceDistrusted replaces the next evidence of a distrusted identity in the table latest. It searches outside
// the writer.
func (s *Store) replaceDistrusted(ctx context.Context, j *backlog.Job) error {
	from := j.Position
	w := distrustedWindow{position: from}
	for begun := time.Now(); len(w.commits) == 0 && !w.isEnd && time.Since(begun) < backlog.TurnTime; {
		if err := s.nextDistrusted(ctx, j, &w); err != nil {
			return fmt.Errorf("find distrusted evidence: %w", err)
		}
	}

	for _, commit := range w.commits {
		list, err := s.findRepairs(ctx, commit)
		if err != nil {
			return err
		}
		for len(list) > 0 {
			batch := list[:firstRepairs(list)]
			list = list[len(batch):]
			if err := s.applyRepairs(ctx, j, from, distrustedWindow{w.distrusts, nil, from, false}, batch); err != nil {
				return err
			}
		}
	}
	return s.applyRepairs(ctx, j, from, w, nil)
}

// nextDistrusted reads the next attestations of a repo.
func (s *Store) nextDistrusted(ctx context.Context, j *backlog.Job, w *distrustedWindow) error {
	_, err := read(ctx, s, txn.ForWrite(""), func(rd reader) (struct{}, error) {
		var since, at ledger.Time
		var identity string
		err := rd.Row(`
SELECT i.identity_id, i.distrusted_since, o.distrusts,
  coalesce((SELECT recorded_at FROM attestations WHERE id = ?), 0)
FROM identities i JOIN orgs o ON o.id = i.org_id WHERE i.id = ?`, w.position, j.Ref).
			Scan(&identity, &since, &w.distrusts, &at)
		if err != nil {
			return struct{}{}, fmt.Errorf("read identity: %w", err)
		}

		n := 0
		err = rd.Each(func(row txn.Scanner) error {
			n++
			var commit int64
			var isIts bool
			err := row.Scan(&w.position, &commit, &isIts)
			if isIts && !slices.Contains(w.commits, commit) {
				w.commits = append(w.commits, commit)
			}
			return err
		}, `
SELECT id, commit_id, identity_id = ? FROM attestations /*+index attestations_by_time*/
WHERE repo_id = ? AND (recorded_at, id) > (?, ?) ORDER BY recorded_at, id LIMIT ?`,
			identity, j.Repo, max(at, since-1), w.position, repairWindow)
		w.isEnd = n < repairWindow
		return struct{}{}, err
	})
	return err
}

// findRepairs finds what replaces the distrusted evidence of a commit. Each of its reads
// examines a bounded number of attestations, because a commit may have any number.
func (s *Store) findRepairs(ctx context.Context, commit int64) ([]repair, error) {
	list, err := read(ctx, s, txn.ForWrite(""), func(rd reader) ([]distrustedRow, error) {
		rows, err := rd.distrustedLatest([]any{commit})
		return rows[commit], err
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := newRetracing(commit, list)
	for last := false; !last; {
		last, err = read(ctx, s, txn.ForWrite(""), func(rd reader) (bool, error) { return r.next(rd, maxRetraced) })
		if err != nil {
			return nil, err
		}
	}

	treeCommits, err := read(ctx, s, txn.ForWrite(""), func(rd reader) (commits int64, err error) {
		return commits, rd.Each(func(row txn.Scanner) error { return row.Scan(&commits) },
			"SELECT t.commits FROM commits c JOIN trees t ON t.id = c.tree_id WHERE c.id = ?", commit)
	})
	repairs := make([]repair, len(list))
	for i, l := range list {
		repairs[i] = repair{l, r.found[l.latestKey].id, treeCommits}
	}
	return repairs, err
}

// firstRepairs returns how many of the rows one write puts right. Each costs as much as its
// tree has commits.
func firstRepairs(list []repair) int {
	cost := int64(0)
	for i, r := range list {
		if cost += 1 + r.treeCommits/repairTree; i > 0 && cost > repairBatch {
			return i
		}
	}
	return len(list)
}

// applyRepairs puts rows of the table latest right, and saves the position and whether the window was the last. It
// does nothing if evidence was distrusted since the rows were found, so that they may be wrong.
func (s *Store) applyRepairs(ctx context.Context, j *backlog.Job, from int64, w distrustedWindow, list []repair) error {
	return s.advance(ctx, j, func(t *tx, j *backlog.Job) (done bool, err error) {
		var distrusts int64
		err = t.Row("SELECT distrusts FROM orgs WHERE id = ?", j.Org).Scan(&distrusts)
		if err != nil || distrusts != w.distrusts || j.Position != from {
			return false, err
		}
		for _, r := range list {
			if err := t.applyRepair(r); err != nil {
				return false, fmt.Errorf("replace distrusted evidence: %w", err)
			}
		}
		j.Position = w.position
		if !w.isEnd || j.Again {
			return w.isEnd, nil
		}
		return true, t.endDistrust(j)
	})
}

// applyRepair puts a row of the table latest right, unless it has changed, and what the tree
// of its commit has.
func (t *tx) applyRepair(r repair) error {
	const isRow = " WHERE commit_id = ? AND predicate_id = ? AND slot = ? AND signer_id = ? AND attestation_id = ?"
	key := []any{r.commit, r.predicate, r.slot, r.signer, r.id}
	var err error
	if r.by == 0 {
		_, err = t.Exec("DELETE FROM latest"+isRow, key...)
	} else {
		_, err = t.Exec("UPDATE latest SET attestation_id = ?"+isRow, append([]any{r.by}, key...)...)
	}
	if err != nil {
		return err
	}

	var tree int64
	if err := t.Row("SELECT tree_id FROM commits WHERE id = ?", r.commit).Scan(&tree); err != nil || tree == 0 {
		return err
	}
	return t.recountTree(tree, r.latestKey)
}

// endDistrust notes that the table latest has no evidence of a repo any more that is distrusted because of an
// identity. The commits are settled again, in case some were settled before.
func (t *tx) endDistrust(j *backlog.Job) error {
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
	return t.s.jobs.Later(t.kernel, r.ID, backlog.Settle, 0, j.Cause)
}
