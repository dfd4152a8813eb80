package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/ledger"
)

// A conn is one SQLite connection with the statements it has prepared. It is
// used by one goroutine at a time. Statements never run under a context that
// can be cancelled: each is short, and an interrupted one would take the whole
// transaction with it.
type conn struct {
	sql   *sql.Conn
	stmts map[string]*sql.Stmt
}

func (s *Store) connect(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{sql: c, stmts: make(map[string]*sql.Stmt)}, nil
}

func (c *conn) close() error {
	for _, stmt := range c.stmts {
		stmt.Close()
	}
	return c.sql.Close()
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := c.sql.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	c.stmts[query] = stmt
	return stmt, nil
}

// exec runs a statement that gives no rows.
func (c *conn) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.Exec(args...)
}

// execOnce runs statements that are not worth keeping prepared.
func (c *conn) execOnce(query string) error {
	_, err := c.sql.ExecContext(context.Background(), query)
	return err
}

// insert runs an INSERT and returns the new row's id.
func (c *conn) insert(query string, args ...any) (int64, error) {
	result, err := c.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// rowsAtOnce is how many rows one statement of insertMany writes.
const rowsAtOnce = 25

// insertMany writes rows of so many columns each; the statement ends with VALUES.
// It spares most of what a statement for every row would cost.
func (c *conn) insertMany(statement string, columns int, args []any) error {
	row := "(?" + strings.Repeat(", ?", columns-1) + ")"
	for batch := range slices.Chunk(args, columns*rowsAtOnce) {
		if _, err := c.exec(statement+row+strings.Repeat(", "+row, len(batch)/columns-1), batch...); err != nil {
			return err
		}
	}
	return nil
}

// valuesAtOnce is how many values one statement of eachIn asks for.
const valuesAtOnce = 32

var manyValues = "(?" + strings.Repeat(", ?", valuesAtOnce-1) + ")"

// eachIn runs a query that ends with IN for so many ids at a time, and calls
// visit for every row. It spares most of what a query for every id would cost.
// The last ones are filled up with one that is there already.
func (c *conn) eachIn(visit func(scanner) error, query string, ids []int64) error {
	for some := range slices.Chunk(ids, valuesAtOnce) {
		values := make([]any, valuesAtOnce)
		for i := range values {
			values[i] = some[min(i, len(some)-1)]
		}
		if err := c.each(visit, query+manyValues, values...); err != nil {
			return err
		}
	}
	return nil
}

// A scanner is one row: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// row runs a query for at most one row; its Scan gives sql.ErrNoRows for none.
func (c *conn) row(query string, args ...any) scanner {
	stmt, err := c.prepare(query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRow(args...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// each runs a query and calls visit for every row.
func (c *conn) each(visit func(scanner) error, query string, args ...any) error {
	stmt, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := stmt.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// all runs a query and gathers its rows.
func all[T any](c *conn, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	var list []T
	err := c.each(func(row scanner) error {
		v, err := scan(row)
		list = append(list, v)
		return err
	}, query, args...)
	return list, err
}

// isUnique reports whether err is a UNIQUE constraint's.
func isUnique(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// storageError turns what SQLite says of a disk that is full, failing or
// locked into CodeStorageUnavailable, and leaves every other error alone.
func storageError(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database cannot be written: %v", err)
	case sqlite3.SQLITE_BUSY:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "another process holds the database's write lock")
	}
	return err
}
