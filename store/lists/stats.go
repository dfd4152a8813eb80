package lists

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Stats is the state of a store.
type Stats struct {
	Engine sqldb.Stats
	// RadarBytes is the memory of the radar's indexes, and RadarLimit its limit.
	RadarBytes, RadarLimit int64
	// Pending is the number of deliveries that are not finished, at most MaxPending, and Oldest
	// the time of the oldest of them; 0 if there is none.
	Pending int64
	Oldest  ledger.Time
	// Backlog is what waits to be done in the background, by task and org.
	Backlog []backlog.Waiting
	Logs    []LogStats
}

// LogStats is the state of the transparency log of an org.
type LogStats struct {
	Org      string
	Size     int64 // of the newest checkpoint, in leaves
	Unsigned int64 // events that the checkpoint does not cover
	SignedAt ledger.Time
}

// MaxPending is the maximum of Stats.Pending.
const MaxPending = 20_000

// Stats returns the state of the store. It examines a bounded number of rows.
func (li *Lists) Stats(ctx context.Context) (Stats, error) {
	st, err := txn.ReadLoose(ctx, li.db, txn.ForWrite(""), func(rd txn.Reader) (st Stats, err error) {
		var oldest string
		err = rd.Row(`
SELECT count(*), coalesce(min(delivery_id), '') FROM (
  SELECT o.delivery_id FROM webhooks w JOIN outbox o ON o.webhook_id = w.id AND o.due_at > 0 LIMIT ?) pending`,
			MaxPending).Scan(&st.Pending, &oldest)
		if err != nil {
			return st, fmt.Errorf("count deliveries: %w", err)
		}
		st.Oldest, _ = txn.IDTime(txn.DeliveryPrefix, oldest)

		if st.Backlog, err = backlog.List(rd); err != nil {
			return st, err
		}

		st.Logs, err = sqldb.All(rd.Conn, func(row txn.Scanner) (l LogStats, err error) {
			return l, row.Scan(&l.Org, &l.Size, &l.Unsigned, &l.SignedAt)
		}, `
SELECT o.name, l.size, o.next_seq - o.log_first - l.size, l.signed_at FROM orgs o JOIN logs l ON l.id = o.log_id
ORDER BY o.id LIMIT ?`, maxCounted)
		if err != nil {
			return st, fmt.Errorf("list logs: %w", err)
		}
		return st, nil
	})
	st.Engine = li.db.Stats()
	st.RadarBytes, st.RadarLimit = li.radar.RadarSize()
	return st, err
}
