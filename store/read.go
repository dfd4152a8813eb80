package store

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A reader is one connection that reads the ledger. What a read does is a method
// of it.
type reader struct {
	*sqldb.Conn
	known *memory
	now   ledger.Time // by the ledger's clock, when the read or write began
}

// read runs fn in a read transaction: everything that fn reads is of one moment.
func read[T any](ctx context.Context, s *Store, fn func(reader) (T, error)) (v T, err error) {
	err = s.db.Read(ctx, func(c *sqldb.Conn) (err error) {
		v, err = fn(reader{Conn: c, known: s.known, now: s.Now()})
		return err
	})
	return v, storageError(err)
}

// readLoose is read without the transaction, for an fn of one statement or one
// whose statements need not agree: it is on the way of every request.
func readLoose[T any](ctx context.Context, s *Store, fn func(reader) (T, error)) (v T, err error) {
	err = s.db.ReadLoose(ctx, func(c *sqldb.Conn) (err error) {
		v, err = fn(reader{Conn: c, known: s.known, now: s.Now()})
		return err
	})
	return v, storageError(err)
}

// storageError gives a fault of the database the code that callers are told, and
// leaves every other error alone.
func storageError(err error) error {
	switch sqldb.ClassOf(err) {
	case sqldb.Full:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
	case sqldb.Failing:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "cannot access the database: %v", err)
	case sqldb.Locked:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database is locked: another process holds the write lock")
	}
	return err
}

type scanner = sqldb.Scanner

// all runs a query and returns its rows as scan reads them.
func all[T any](rd reader, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	return sqldb.All(rd.Conn, scan, query, args...)
}

func scanID(row scanner) (id int64, err error) {
	err = row.Scan(&id)
	return id, err
}

func scanText(row scanner) (string, error) {
	var text string
	err := row.Scan(&text)
	return text, err
}
