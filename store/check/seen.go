package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// keep parses the checkpoints with which the logs are compared.
func (c *checker) keep(list []Seen) error {
	for _, s := range list {
		checkpoint, err := proof.ReadCheckpoint(s.Signed)
		if err != nil && s.IsLast {
			c.Problemf("checkpoint", "", "", "the last signed checkpoint, %s, is damaged: %v", s.What, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.What, err)
		}
		c.seen = append(c.seen, &seenCheckpoint{Seen: s, origin: checkpoint.Origin})
	}
	return nil
}

// ask asks others for what they have seen of the present log of an org, before it is read: the
// log may grow.
func (c *checker) ask(ctx context.Context, id int64) error {
	if c.others == nil {
		return nil
	}
	var origin string
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error { return row.Scan(&origin) },
			"SELECT l.origin FROM orgs o JOIN logs l ON l.id = o.log_id WHERE o.id = ?", id)
	})
	if err != nil || origin == "" {
		return err
	}

	list, unchecked := c.others(ctx, origin)
	for _, text := range unchecked {
		c.Uncheckedf("%s", text)
	}
	for _, s := range list {
		if err := c.keep([]Seen{s}); err != nil {
			c.Uncheckedf("%v", err)
		}
	}
	return nil
}

// checkFound reports the checkpoints of logs that the database does not have.
func (c *checker) checkFound() {
	for _, k := range c.seen {
		if !k.found && !k.IsLast {
			c.Problemf("checkpoint", "", "", "%s is of the log %s, which the database does not have", k.What, k.origin)
		}
	}
}
