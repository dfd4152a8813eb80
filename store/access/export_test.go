package access

import (
	"context"

	"github.com/ledgerd/ledgerd/store/txn"
)

// Limits of the room.
const (
	MaxTouched        = maxTouched
	MaxSessions       = maxSessions
	PruneExpiredBatch = pruneExpiredBatch
)

// IsTouched reports whether the last use of a token is remembered.
func (ac *Access) IsTouched(id string) bool {
	_, ok := ac.touched.Get(id)
	return ok
}

// CountSessions counts the rows of sessions.
func (ac *Access) CountSessions(ctx context.Context) (n int, err error) {
	return txn.Read(ctx, ac.db, txn.ForWrite(""), func(rd txn.Reader) (n int, err error) {
		return n, rd.Row("SELECT count(*) FROM sessions").Scan(&n)
	})
}
