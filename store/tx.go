package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
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

// A tx is one write, or a set of them, inside the writer's transaction. What a
// write does is a method of it.
type tx struct {
	reader
	batch *batch
	// gathered is what this write adds to its batch if it succeeds.
	gathered gathered
	// index is the radar's index of the repo that the write is about, where it
	// was refreshed for it.
	index *radarindex.Index
	// work holds the commits that have to be derived again.
	work worklist
	// kept are the commits that this write has changed, until they are written.
	kept []*commitRow
	// evaluating marks a write of Evaluate on its way through a repo's commits.
	evaluating bool
	// next holds, by table, the id of the next row that is buffered.
	next map[string]int64
	// remembered is set once something that the write has inserted is remembered.
	remembered bool
	// hooks are the webhooks of the repos that the write has events of.
	hooks map[int64][]hook
}

// write runs fn in the writer's next transaction.
func write[T any](ctx context.Context, s *Store, fn func(*tx) (T, error)) (v T, err error) {
	err = s.db.Write(ctx, sqldb.Write{Do: func(c *sqldb.Conn) error {
		return s.inTx(c, func(t *tx) (err error) {
			v, err = fn(t)
			return err
		})
	}})
	return v, storageError(err)
}

// writeYielding is write for what leaves the writer to those who record.
func writeYielding[T any](ctx context.Context, s *Store, fn func(*tx) (T, error)) (v T, err error) {
	err = s.db.Write(ctx, sqldb.Write{Yields: true, Do: func(c *sqldb.Conn) error {
		return s.inTx(c, func(t *tx) (err error) {
			v, err = fn(t)
			return err
		})
	}})
	return v, storageError(err)
}

// write is the function of that name for what returns no value.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	_, err := write(ctx, s, func(t *tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

// inTx runs fn as one write of the transaction on c, and writes what it has
// left in buffers.
func (s *Store) inTx(c *sqldb.Conn, fn func(*tx) error) (err error) {
	t := &tx{reader: reader{Conn: c, known: s.known, now: s.Now()}, batch: s.batch}
	done := false
	defer func() { // also when fn panics
		if done {
			return
		}
		if t.remembered {
			t.known.forgetRows()
		}
		t.batch.discard()
	}()
	if err := fn(t); err != nil {
		return err
	}
	if len(t.work.order) > 0 {
		return errors.New("commits are left that have to be derived again")
	}
	if err := t.flush(); err != nil {
		return err
	}
	t.batch.add(&t.gathered, t.now)
	done = true
	return nil
}

// flush writes the rows that wait in the buffers.
func (t *tx) flush() error {
	t.bufferKept()
	for _, rows := range t.batch.rows.all() {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	return nil
}

// storageError gives a fault of the database the code that callers are told, and
// leaves every other error alone.
func storageError(err error) error {
	switch sqldb.ClassOf(err) {
	case sqldb.Full:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
	case sqldb.Failing:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database cannot be written: %v", err)
	case sqldb.Locked:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "another process holds the database's write lock")
	}
	return err
}

type scanner = sqldb.Scanner

// all runs a query and returns its rows as scan reads them.
func all[T any](rd reader, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	return sqldb.All(rd.Conn, scan, query, args...)
}
