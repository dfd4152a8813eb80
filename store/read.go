package store

import (
	"context"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A reader is a connection that reads the ledger. Its methods are the operations of
// a read.
type reader struct {
	*sqldb.Conn
	caches *caches
	now    ledger.Time // start of the read or write, by the ledger's clock
	writes bool        // whether it is the writer
	// claimed has the changed paths that a write has stored, by commit.
	claimed map[int64][]string
	// fresh reports whether reading a commit that is due fails with errOutdated.
	fresh bool
}

// byOrg describes the reads of a caller's request in an org.
func byOrg(org string) sqldb.Reader { return sqldb.Reader{Lane: sqldb.Requests, Org: org} }

// forWrite describes the reads that belong to a write in an org, or to background work if
// org is empty.
func forWrite(org string) sqldb.Reader { return sqldb.Reader{Lane: sqldb.Writes, Org: org} }

// forCheck describes the lookups by key that every request needs.
func forCheck() sqldb.Reader { return sqldb.Reader{Lane: sqldb.Checks} }

// read runs fn in a read transaction: fn sees a consistent snapshot.
func read[T any](ctx context.Context, s *Store, by sqldb.Reader, fn func(reader) (T, error)) (v T, err error) {
	err = s.db.Read(ctx, by, func(c *sqldb.Conn) (err error) {
		v, err = fn(reader{Conn: c, caches: s.caches, now: s.Now()})
		return err
	})
	return v, txn.StorageError(err)
}

// readLoose is like read, but without a transaction, which saves time in every
// request. It is for an fn that runs one statement, or does not need a consistent
// snapshot.
func readLoose[T any](ctx context.Context, s *Store, by sqldb.Reader, fn func(reader) (T, error)) (v T, err error) {
	err = s.db.ReadLoose(ctx, by, func(c *sqldb.Conn) (err error) {
		v, err = fn(reader{Conn: c, caches: s.caches, now: s.Now()})
		return err
	})
	return v, txn.StorageError(err)
}

// all runs a query and returns its rows, each converted by scan.
func all[T any](rd reader, scan func(txn.Scanner) (T, error), query string, args ...any) ([]T, error) {
	return sqldb.All(rd.Conn, scan, query, args...)
}
