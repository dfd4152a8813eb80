// Package sqldb is the seam between the ledger's rules, which write SQL, and the
// database engines that run it. An engine owns the connections and the one
// writer; it knows nothing of the ledger.
package sqldb

import (
	"context"
)

// An Engine is an open database.
type Engine interface {
	// Read runs fn on a connection for reading, in a transaction: everything
	// that fn reads is of one moment. The context counts while Read waits for a
	// connection.
	Read(ctx context.Context, fn func(*Conn) error) error
	// ReadLoose is Read without the transaction, for an fn of one statement or
	// one whose statements need not agree.
	ReadLoose(ctx context.Context, fn func(*Conn) error) error

	// Write runs w in the writer's next transaction and returns once that is on
	// disk, or with the error that undid w. A context that ends before w has
	// begun withdraws it; from then on Write waits for the outcome.
	Write(ctx context.Context, w Write) error
	// TryWrite queues w if there is room, reports whether it did, and does not
	// wait for the outcome.
	TryWrite(w Write) bool
	// WaitTurn waits until a write that yields may begin: while other writes keep the
	// writer busy, those that yield share a fixed part of its time.
	WaitTurn(ctx context.Context) error

	// Watch calls changed, until the context ends, whenever another process may
	// have written to the database, and failed if it cannot find out.
	Watch(ctx context.Context, changed func(), failed func(error))
	// Close lets the writes that are queued finish and closes the database.
	Close() error
}

// A Write is what one caller wants written. It shares its transaction with the
// writes that are queued with it; a write that fails undoes only itself.
type Write struct {
	// Do runs in a savepoint of its own. It may run again after it has failed.
	Do func(*Conn) error
	// Set, where Do is nil, writes Item together with the items of other writes
	// of the same Set that follow each other in the queue.
	Set  Set
	Item any
	// Yields marks a write that leaves the writer to others; see WaitTurn.
	Yields bool
}

// A Set writes many items at once. It is comparable.
type Set interface {
	// WriteAll writes the items in their order, in one savepoint. Where it fails,
	// nothing of it stays, and each item is written in a call of its own, so that
	// a fault of one undoes only that one.
	WriteAll(c *Conn, items []any) error
}

// Hooks run around the transactions of the writer, in its goroutine.
type Hooks struct {
	// BeforeCommit writes what the writes of the transaction have gathered. Its
	// error undoes the transaction.
	BeforeCommit func(*Conn) error
	// AfterCommit runs once the transaction is on disk, before its callers are
	// answered.
	AfterCommit func()
	// AfterRollback runs when a whole transaction is undone, before another can
	// begin.
	AfterRollback func()
}
