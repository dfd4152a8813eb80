package facts

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/txn"
)

// AddPaths returns all paths that were ever claimed.
func AddPaths(claimed []string, before, now []radar.Change) []string {
	return addPaths(claimed, before, now)
}

// PathsReadDuringWrite returns the changed paths that a read gathers of a commit, given by its row id, while a
// write has stored others.
func (fa *Facts) PathsReadDuringWrite(ctx context.Context, commitID int64, stored []string) ([]string, error) {
	c := &Commit{CommitRow: &CommitRow{ID: commitID}}
	err := fa.db.Change(ctx, "", func(*txn.Tx) error {
		fa.claimed[commitID] = stored
		_, err := txn.Read(ctx, fa.db, txn.ForWrite(""), func(rd txn.Reader) (struct{}, error) {
			return struct{}{}, fa.gatherChanges(rd, map[int64]*Commit{commitID: c}, []any{commitID})
		})
		return err
	})
	return c.Facts.Changes, err
}
