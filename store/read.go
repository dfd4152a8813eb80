package store

import (
	"context"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A reader is a connection that reads the ledger. Its methods are the operations of
// a read.
type reader struct {
	txn.Reader
	s *Store
}

// read runs fn in a read transaction: fn sees a consistent snapshot.
func read[T any](ctx context.Context, s *Store, by sqldb.Reader, fn func(reader) (T, error)) (T, error) {
	return txn.Read(ctx, s.db, by, func(rd txn.Reader) (T, error) {
		return fn(reader{Reader: rd, s: s})
	})
}

// readLoose is like read, but without a transaction. See txn.ReadLoose.
func readLoose[T any](ctx context.Context, s *Store, by sqldb.Reader, fn func(reader) (T, error)) (T, error) {
	return txn.ReadLoose(ctx, s.db, by, func(rd txn.Reader) (T, error) {
		return fn(reader{Reader: rd, s: s})
	})
}

// all runs a query and returns its rows, each converted by scan.
func all[T any](rd reader, scan func(txn.Scanner) (T, error), query string, args ...any) ([]T, error) {
	return txn.All(rd.Reader, scan, query, args...)
}
