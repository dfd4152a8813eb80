package sqlite

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// transactions begins and ends the transactions of the writer.
type transactions struct {
	conn  *sqldb.Conn
	guard *guard
	// changes is how many rows the connection had changed when the log last got the first page.
	changes int64
}

// newTransactions returns the transactions on c.
func newTransactions(c *sqldb.Conn, g *guard) (*transactions, error) {
	changes, err := totalChanges(c)
	return &transactions{conn: c, guard: g, changes: changes}, err
}

// totalChanges returns how many rows a connection has changed.
func totalChanges(c *sqldb.Conn) (n int64, err error) {
	err = c.Row("SELECT total_changes()").Scan(&n)
	return n, err
}

// Begin implements engine.Transactions. It locks the whole file.
func (t *transactions) Begin([]*sqldb.Write) (c *sqldb.Conn, later []*sqldb.Write, err error) {
	_, err = t.conn.Exec("BEGIN IMMEDIATE")
	return t.conn, nil, err
}

// Commit implements engine.Transactions.
func (t *transactions) Commit(c *sqldb.Conn) error {
	// A commit may also copy the log into the file.
	if err := t.guard.check(); err != nil {
		return err
	}
	if err := t.logFirstPage(c); err != nil {
		return fmt.Errorf("write the first page: %w", err)
	}
	if _, err := c.Exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// logFirstPage writes the first page to the log if the transaction has changed anything: see checkGeneration.
func (t *transactions) logFirstPage(c *sqldb.Conn) error {
	changes, err := totalChanges(c)
	if err != nil || changes == t.changes {
		return err
	}
	t.changes = changes
	return logFirstPage(c)
}

// Rollback implements engine.Transactions.
func (t *transactions) Rollback(c *sqldb.Conn, err error) error {
	_ = c.Run("ROLLBACK") // fails if SQLite has already rolled back
	return takeBack(c, err)
}

// IsOfDatabase implements engine.Transactions.
func (t *transactions) IsOfDatabase(err error) bool { return isSQLite(err) }
