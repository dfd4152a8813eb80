package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// repairWindow is the number of attestations of which one read finds the distrusted.
	repairWindow = 500
	// repairBatch is the number of rows that one write puts right.
	repairBatch = 100
	// repairTree is the number of commits of a tree that cost as much as one row.
	repairTree = 20
)

// A distrust is the progress of replacing the distrusted evidence of an identity in the
// table latest. All other reads find what it replaces each time they need it.
type distrust struct {
	identity string
	orgID    int64
	since    ledger.Time
	// distrusts is how often evidence of the org was distrusted when it was read.
	distrusts int64
	position  repairPosition
}

// A repairPosition is a position among the attestations of an org.
type repairPosition struct {
	repo        int64
	at          ledger.Time
	attestation int64
	isEnd       bool // all were read
}

// A repair puts a row of the table latest right: the attestation by takes the place of the
// distrusted one, or none if it is 0.
type repair struct {
	distrustedRow
	by int64
	// treeCommits is the number of commits with the same tree; 0 if there are no others.
	treeCommits int64
}

// repairLatest replaces all distrusted evidence in the table latest. Its progress is in the
// database, so it survives a crash.
func (s *Store) repairLatest(ctx context.Context) error {
	for {
		d, err := read(ctx, s, forWrite(""), reader.nextDistrust)
		if err != nil || d == nil {
			return err
		}
		for more := true; more; {
			if more, err = s.repairNext(ctx, d); err != nil {
				return fmt.Errorf("identity %s: %w", d.identity, err)
			}
		}
	}
}

// nextDistrust reads the progress of an identity's distrust, or nil if none is left.
func (rd reader) nextDistrust() (*distrust, error) {
	d := new(distrust)
	err := rd.Row(`
SELECT x.identity_id, x.org_id, x.since, x.repo_id, x.at, x.attestation_id, o.distrusts
FROM distrusts x JOIN orgs o ON o.id = x.org_id ORDER BY x.identity_id LIMIT 1`).
		Scan(&d.identity, &d.orgID, &d.since, &d.position.repo, &d.position.at, &d.position.attestation, &d.distrusts)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return d, err
}

// repairNext replaces the next distrusted evidence of an identity: that of one window. It
// searches outside the writer. It reports whether there may be more.
func (s *Store) repairNext(ctx context.Context, d *distrust) (more bool, err error) {
	commits, next, err := s.findDistrusted(ctx, d)
	if err != nil {
		return false, err
	}
	for _, commit := range commits {
		list, err := s.findRepairs(ctx, commit)
		if err != nil {
			return false, err
		}
		for len(list) > 0 {
			batch := list[:firstRepairs(list)]
			list = list[len(batch):]
			if more, err := s.applyRepairs(ctx, d, d.position, batch); err != nil || !more {
				return false, err
			}
		}
	}

	if !next.isEnd && len(commits) == 0 {
		d.position = next // saved with the next repairs
		return true, nil
	}
	if more, err = s.applyRepairs(ctx, d, next, nil); err == nil {
		d.position = next
	}
	return more, err
}

// findDistrusted reads the next attestations of an org, until some are distrusted because
// of the identity. It returns their commits, and the position after them.
func (s *Store) findDistrusted(ctx context.Context, d *distrust) (commits []int64, next repairPosition, err error) {
	next = d.position
	_, err = read(ctx, s, forWrite(""), func(rd reader) (struct{}, error) {
		err := rd.Row("SELECT id FROM repos WHERE org_id = ? AND id >= ? ORDER BY id LIMIT 1", d.orgID, next.repo).
			Scan(&next.repo)
		if errors.Is(err, sql.ErrNoRows) {
			next.isEnd = true
			return struct{}{}, nil
		}
		if err != nil {
			return struct{}{}, fmt.Errorf("find repo: %w", err)
		}
		if next.repo != d.position.repo {
			next.at, next.attestation = 0, 0
		}
		commits, err = rd.distrustedWindow(d, &next)
		return struct{}{}, err
	})
	return commits, next, err
}

// distrustedWindow reads the next attestations of a repo, and moves the position after them.
// It returns the commits of those by the identity.
func (rd reader) distrustedWindow(d *distrust, next *repairPosition) (commits []int64, err error) {
	n := 0
	err = rd.Each(func(row scanner) error {
		n++
		var commit int64
		var isIts bool
		err := row.Scan(&next.attestation, &next.at, &commit, &isIts)
		if isIts && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
		return err
	}, `
SELECT id, recorded_at, commit_id, identity_id = ? FROM attestations /*+index attestations_by_time*/
WHERE repo_id = ? AND (recorded_at, id) > (?, ?) ORDER BY recorded_at, id LIMIT ?`,
		d.identity, next.repo, max(next.at, d.since-1), next.attestation, repairWindow)

	if err != nil {
		return nil, fmt.Errorf("read attestations: %w", err)
	}
	if n < repairWindow {
		*next = repairPosition{repo: next.repo + 1}
	}
	return commits, nil
}

// findRepairs finds what replaces the distrusted evidence of a commit. Each of its reads
// examines a bounded number of attestations, because a commit may have any number.
func (s *Store) findRepairs(ctx context.Context, commit int64) ([]repair, error) {
	list, err := read(ctx, s, forWrite(""), func(rd reader) ([]distrustedRow, error) {
		rows, err := rd.distrustedLatest([]any{commit})
		return rows[commit], err
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := newRetracing(commit, list)
	for last := false; !last; {
		last, err = read(ctx, s, forWrite(""), func(rd reader) (bool, error) { return r.next(rd, maxRetraced) })
		if err != nil {
			return nil, err
		}
	}

	treeCommits, err := read(ctx, s, forWrite(""), func(rd reader) (commits int64, err error) {
		return commits, rd.Each(func(row scanner) error { return row.Scan(&commits) },
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

// applyRepairs puts rows of the table latest right, and saves the progress. It reports
// whether more is to be done: not at the end, and not if evidence was distrusted since the
// rows were found, so that they may be wrong.
func (s *Store) applyRepairs(
	ctx context.Context, d *distrust, next repairPosition, list []repair,
) (more bool, err error) {
	return writeAs(ctx, s, sqldb.Write{Owners: []int64{d.orgID}}, func(t *tx) (bool, error) {
		var isCurrent bool
		err := t.Row(`
SELECT EXISTS (SELECT 1 FROM distrusts x JOIN orgs o ON o.id = x.org_id
  WHERE x.identity_id = ? AND x.since = ? AND o.distrusts = ?)`, d.identity, d.since, d.distrusts).Scan(&isCurrent)
		if err != nil || !isCurrent {
			return false, err
		}
		for _, r := range list {
			if err := t.applyRepair(r); err != nil {
				return false, fmt.Errorf("replace distrusted evidence: %w", err)
			}
		}

		if next.isEnd {
			return false, t.endDistrust(d)
		}
		_, err = t.Exec("UPDATE distrusts SET repo_id = ?, at = ?, attestation_id = ? WHERE identity_id = ?",
			next.repo, next.at, next.attestation, d.identity)
		return true, err
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

// endDistrust notes that the table latest has no evidence any more that is distrusted
// because of an identity. The states are derived again, in case some were derived before.
func (t *tx) endDistrust(d *distrust) error {
	if _, err := t.Exec("DELETE FROM distrusts WHERE identity_id = ?", d.identity); err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	_, err := t.Exec(`
UPDATE orgs SET distrusting = CASE WHEN EXISTS (SELECT 1 FROM distrusts WHERE org_id = orgs.id) THEN 1 ELSE 0 END
WHERE id = ?`, d.orgID)
	if err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	return t.rederiveOrg(d.orgID, ledger.Cause{Type: ledger.CauseIdentity, ID: d.identity})
}
