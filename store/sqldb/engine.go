// Package sqldb is the interface between the store, which writes SQL, and the
// database engine that runs it. An engine owns the connections and the single
// writer, and contains no rules of the ledger.
package sqldb

import (
	"context"
)

// An Engine is an open database.
type Engine interface {
	// Read runs fn on a reading connection, in a transaction: all that fn reads is
	// from one snapshot. Cancelling the context only ends the wait for a connection.
	Read(ctx context.Context, fn func(*Conn) error) error
	// ReadLoose is like Read, but without a transaction. It suits a single statement,
	// or statements that need not see the same snapshot.
	ReadLoose(ctx context.Context, fn func(*Conn) error) error

	// Write runs w in the writer's next transaction. It returns when that is on disk,
	// or with the error that undid w. If the context is cancelled before w begins, w
	// does not run; after that, Write waits for the outcome.
	Write(ctx context.Context, w Write) error
	// TryWrite queues w and reports whether there was room in the queue. It does not
	// wait for the outcome.
	TryWrite(w Write) bool
	// WaitTurn waits until a write that yields may begin. While other writes keep the
	// writer busy, those that yield together get a fixed share of its time.
	WaitTurn(ctx context.Context) error

	// Watch calls changed whenever another process may have written to the database,
	// and failed if it cannot check. It returns when the context is cancelled.
	Watch(ctx context.Context, changed func(), failed func(error))
	// Close waits for the queued writes and closes the database.
	Close() error
}

// A Write is one caller's change of the database. It shares a transaction with
// the writes queued at the same time. A write that fails undoes only itself.
type Write struct {
	// Do runs in its own savepoint. It may run again after it has failed.
	Do func(*Conn) error
	// Set is used if Do is nil. It writes Item together with the items of adjacent
	// writes in the queue that have the same Set.
	Set  Set
	Item any
	// Yields marks a write of low priority. Engine.WaitTurn limits the time that such
	// writes take.
	Yields bool
}

// A Set writes many items at once. It must be comparable.
type Set interface {
	// WriteAll writes the items in order, in one savepoint. If it fails, all its
	// changes are undone, and each item is written by its own call of WriteAll, so
	// that only the faulty item fails.
	WriteAll(c *Conn, items []any) error
}

// Hooks run around the writer's transactions, in the writer's goroutine.
type Hooks struct {
	// BeforeCommit writes the rows that the writes of the transaction have buffered.
	// If it fails, the transaction is rolled back.
	BeforeCommit func(*Conn) error
	// AfterCommit runs when the transaction is on disk, before its callers of Write
	// return.
	AfterCommit func()
	// AfterRollback runs when a whole transaction is rolled back, before the next
	// one begins.
	AfterRollback func()
}
