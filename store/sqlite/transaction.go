package sqlite

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// transactions begins and ends the transactions of the writer.
type transactions struct {
	conn  *sqldb.Conn
	guard *guard
}

// Begin implements engine.Transactions. It locks the whole file.
func (t transactions) Begin([]*sqldb.Write) (c *sqldb.Conn, later []*sqldb.Write, err error) {
	_, err = t.conn.Exec("BEGIN IMMEDIATE")
	return t.conn, nil, err
}

// Commit implements engine.Transactions.
func (t transactions) Commit(c *sqldb.Conn) error {
	// A commit may also copy the log into the file.
	if err := t.guard.check(); err != nil {
		return err
	}
	if _, err := c.Exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Rollback implements engine.Transactions.
func (t transactions) Rollback(c *sqldb.Conn, err error) error {
	_ = c.Run("ROLLBACK") // fails if SQLite has already rolled back
	return takeBack(c, err)
}

// IsOfDatabase implements engine.Transactions.
func (t transactions) IsOfDatabase(err error) bool { return isSQLite(err) }
