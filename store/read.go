package store

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
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
	return v, storageError(err)
}

// readLoose is like read, but without a transaction, which saves time in every
// request. It is for an fn that runs one statement, or does not need a consistent
// snapshot.
func readLoose[T any](ctx context.Context, s *Store, by sqldb.Reader, fn func(reader) (T, error)) (v T, err error) {
	err = s.db.ReadLoose(ctx, by, func(c *sqldb.Conn) (err error) {
		v, err = fn(reader{Conn: c, caches: s.caches, now: s.Now()})
		return err
	})
	return v, storageError(err)
}

// storageError returns a CodeStorageUnavailable error for a storage fault, and any
// other error unchanged. The engine reports storage faults to the log.
func storageError(err error) error {
	switch sqldb.ClassOf(err) {
	case sqldb.Full:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
	case sqldb.Failing:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"the disk or the database file cannot be read or written (see the server log)")

	case sqldb.Unreachable:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database is not reached (see the server log)")
	case sqldb.Slow:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"the read took too long and was stopped (try again later, or with a narrower filter)")
	case sqldb.Locked:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database is locked: another process holds the write lock")
	case sqldb.Stalled:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%v", err)

	case sqldb.Uncertain:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"whether this was recorded is unknown: the disk or the database failed during the write (send it again)")
	case sqldb.Gone:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%v: nothing was written (see the server log)", err)
	}
	return err
}

// Unread returns the error of a read after a write that is on disk, so that it does not
// look as if nothing was changed. done says what was written. If err is nil, so is the
// result.
func Unread(done string, err error) error {
	if isUnavailable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%s, but its record cannot be read now: %v", done, err)
	}
	return err
}

type scanner = sqldb.Scanner

// all runs a query and returns its rows, each converted by scan.
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

// isCode reports whether an error has a code.
func isCode(err error, code ledger.Code) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == code
}

// isUnavailable reports whether nothing can be recorded at the moment, because of the storage or of
// the clock.
func isUnavailable(err error) bool {
	return isCode(err, ledger.CodeStorageUnavailable) || isCode(err, ledger.CodeClockJumped)
}
