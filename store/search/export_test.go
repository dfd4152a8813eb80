package search

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/store/txn"
)

// InsertCommit inserts a commit of a repo.
func (fi *Finder) InsertCommit(ctx context.Context, repo, sha string) error {
	return fi.db.Change(ctx, "", func(t *txn.Tx) error {
		_, err := t.Insert(`
INSERT INTO commits (repo_id, sha, state, state_since, registered_at, policy_version)
SELECT id, ?, 0, 1, 1, 1 FROM repos WHERE name = ?`, sha, repo)
		return err
	})
}

// NewestBelow returns the commits of acme from below a row id down to the end of a part, and this end;
// 0 if it is the last part.
func (fi *Finder) NewestBelow(ctx context.Context, below int64, budget int) (ids []int64, end int64, err error) {
	_, err = txn.Read(ctx, fi.db, txn.ByOrg("acme"), func(rd txn.Reader) (struct{}, error) {
		p, err := findSearched(rd, "acme", "")
		if err != nil {
			return struct{}{}, err
		}
		tracks, err := commitTracks(rd, p, below)
		if err != nil {
			return struct{}{}, err
		}

		ids = nil // a long read begins again
		examined, last, err := readNewest(rd, tracks, budget, func(c txn.Keyed[newestCommit]) error {
			ids = append(ids, c.ID)
			return nil
		}, neverFull)
		if examined > budget || examined != len(ids) {
			return struct{}{}, fmt.Errorf("%d rows examined, %d visited, with a budget of %d", examined, len(ids), budget)
		}
		if last != nil {
			end = last[0].(int64)
		}
		return struct{}{}, err
	})
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id < end })
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, end, err
}
