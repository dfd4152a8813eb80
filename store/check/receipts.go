package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// receiptKeys checks that the keys of receipts of an org's logs are as the events say that announce them. A key
// without a row is announced again.
func (c *checker) receiptKeys(ctx context.Context, o *org) error {
	return c.Read(ctx, func(conn *sqldb.Conn) error {
		if err := o.identities.readOn(conn, o.id); err != nil {
			return err
		}
		for i, l := range o.logs {
			end := int64(-1) // of a log that grows
			if i+1 < len(o.logs) {
				end = l.end
			}
			if err := c.receiptKeysOf(conn, o, l, end); err != nil {
				return fmt.Errorf("read keys of receipts: %w", err)
			}
		}
		return nil
	})
}

// receiptKeysOf compares the keys of a log, whose events end before the number end, if that is not -1.
func (c *checker) receiptKeysOf(conn *sqldb.Conn, o *org, l *orgLog, end int64) error {
	return conn.Each(func(row sqldb.Scanner) error {
		var k receiptKey
		var public []byte
		var event string
		if err := row.Scan(&k.key, &public, &k.notBefore, &k.notAfter, &event); err != nil {
			return err
		}
		said, ok := o.identities.receipts[event]
		k.seq, k.public = said.seq, string(public)
		switch {
		case !ok && o.identities.unread > 0: // perhaps one of those
		case !ok || said != k || said.seq < l.first || end >= 0 && said.seq >= end:
			c.Problemf("receipt key", o.name, "key "+k.key, "it is not as its event %q in the %s says", event, l.row())
		}
		return nil
	}, "SELECT key, public_key, not_before, not_after, event_id FROM receipt_keys WHERE log_id = ?", l.id)
}
