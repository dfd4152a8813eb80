package access

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// pruneExpiredBatch is the number of expired rows that one write deletes.
const pruneExpiredBatch = 500

// pruneExpired deletes the rows that expired before a time, in batches. Its two statements report
// whether any exist, and delete a limited number of them. It locks no org, since no other write
// depends on these rows.
func (ac *Access) pruneExpired(ctx context.Context, before ledger.Time, anyExist, remove string) error {
	found, err := txn.ReadLoose(ctx, ac.db, txn.ForWrite(""), func(rd txn.Reader) (found bool, err error) {
		return found, rd.Row(anyExist, before).Scan(&found)
	})
	if err != nil || !found {
		return err
	}
	return ac.db.Repeat(ctx, sqldb.Write{Independent: true}, func(t *txn.Tx) (last bool, err error) {
		deleted, err := t.Exec(remove, before, pruneExpiredBatch)
		return deleted < pruneExpiredBatch, err
	})
}
