package signers

import (
	"context"
	"fmt"
	"math"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Log is one of the logs of an org. Its events have the numbers from First to End.
type Log struct {
	ID, First, End int64
	Row            string // names it in problems
}

// CheckReceiptKeys checks that the keys of receipts of an org's logs, oldest first, are as the events say that
// announce them. A key without a row is announced again.
func (o *Org) CheckReceiptKeys(ctx context.Context, logs []Log) error {
	return o.Read(ctx, func(conn *sqldb.Conn) error {
		if err := o.logged.readOn(conn, o.id); err != nil {
			return err
		}
		for i, l := range logs {
			if i == len(logs)-1 {
				l.End = math.MaxInt64 // it grows
			}
			if err := o.receiptKeysOf(conn, l); err != nil {
				return fmt.Errorf("read keys of receipts: %w", err)
			}
		}
		return nil
	})
}

// receiptKeysOf compares the keys of a log.
func (o *Org) receiptKeysOf(conn *sqldb.Conn, l Log) error {
	return conn.Each(func(row sqldb.Scanner) error {
		var k receiptKey
		var public []byte
		var event string
		if err := row.Scan(&k.key, &public, &k.notBefore, &k.notAfter, &event); err != nil {
			return err
		}
		said, ok := o.logged.receipts[event]
		k.seq, k.public = said.seq, string(public)
		switch {
		case !ok && o.logged.unread > 0: // perhaps one of those
		case !ok || said != k || said.seq < l.First || said.seq >= l.End:
			o.Problemf("receipt key", o.name, "key "+k.key, "it is not as its event %q in the %s says", event, l.Row)
		}
		return nil
	}, "SELECT key, public_key, not_before, not_after, event_id FROM receipt_keys WHERE log_id = ?", l.ID)
}
