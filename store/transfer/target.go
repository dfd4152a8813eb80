package transfer

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A target is a database that is filled. What is written is undone if the copy fails.
type target interface {
	// tables returns the tables, each after those that it refers to.
	tables() []table
	// identity identifies a database on a server. It is empty for a file.
	identity() string
	// write adds rows to a table.
	write(ctx context.Context, t table, rows [][]any) error
	// change runs a function that changes rows.
	change(ctx context.Context, fn func(*sqldb.Conn) error) error
	// read runs a function that reads what was written.
	read(ctx context.Context, fn func(*sqldb.Conn) error) error
}

// housekeeping has tables with rows that no user has created: a server writes them when it opens
// an empty database.
var housekeeping = [...]string{"clock", "cursor_key"}

// makeEmpty returns an error if a database contains a ledger. It deletes the rows of housekeeping.
func makeEmpty(c *sqldb.Conn, tables []table) error {
	for _, t := range tables {
		if slices.Contains(housekeeping[:], t.name) {
			if _, err := c.Exec("DELETE FROM " + t.name); err != nil {
				return fmt.Errorf("empty table %s: %w", t.name, err)
			}
			continue
		}
		var filled bool
		if err := c.Row("SELECT EXISTS (SELECT 1 FROM " + t.name + ")").Scan(&filled); err != nil {
			return fmt.Errorf("read table %s: %w", t.name, err)
		}
		if filled {
			return fmt.Errorf("the target is not empty: its table %s has rows (name a database without a ledger)", t.name)
		}
	}
	return nil
}
