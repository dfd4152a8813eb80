// Package sqldb is the interface between the store, which writes SQL, and the
// database engine that runs it. An engine owns the connections and the single
// writer, and contains no rules of the ledger.
package sqldb

import (
	"context"
	"time"
)

// An Engine is an open database.
type Engine interface {
	// Read runs fn on a reading connection, in a transaction: all that fn reads is
	// from one snapshot. It ends with the context, and its error has the class Slow if
	// it took too long.
	Read(ctx context.Context, r Reader, fn func(*Conn) error) error
	// ReadLoose is like Read, but without a transaction. It suits a single statement,
	// or statements that need not see the same snapshot.
	ReadLoose(ctx context.Context, r Reader, fn func(*Conn) error) error

	// Write runs w in the writer's next transaction. It returns when that is on disk,
	// or with the error that undid w. If the context is cancelled before w begins,
	// Write returns at once and w does not run; after that, Write waits for the outcome.
	Write(ctx context.Context, w Write) error
	// TryWrite queues w and reports whether there was room in the queue. It does not
	// wait for the outcome.
	TryWrite(w Write) bool
	// WaitTurn waits until a write that yields may begin. While other writes keep the
	// writer busy, those that yield together get a fixed share of its time.
	WaitTurn(ctx context.Context) error

	// Watch checks several times a second whether another process may have written to
	// the database, and calls checked with the result or the error. It returns when the
	// context is cancelled.
	Watch(ctx context.Context, checked func(changed bool, err error))
	// Ready returns an error if the database file is gone, the last write or read
	// failed because of the storage, or a write has waited for seconds. It uses no
	// connection, and does not wait.
	Ready() error
	// Stats returns the state of the engine.
	Stats() Stats
	// Close waits for the queued writes and closes the database.
	Close() error
}

// A Reader describes who reads. It decides which connection a read gets, and when.
type Reader struct {
	Lane Lane
	// Org is the org that the read is for, or empty. While reads wait for a connection,
	// orgs take turns.
	Org string
}

// A Lane is a group of reads with connections of its own, so that other reads cannot
// make them wait.
type Lane int

// The lanes.
const (
	// Requests is for what callers list and show.
	Requests Lane = iota
	// Writes is for reads that belong to a write, or to background work if they have no
	// org. All others have a time limit of seconds.
	Writes
	// Checks is for lookups by key that every request needs, such as of its token.
	Checks
	// Long is for the reads of Requests that call Conn.Long. Few run at the same time, so
	// that they leave CPUs and connections to others.
	Long
	// Lanes is the number of lanes.
	Lanes
)

// String returns the name of a lane.
func (l Lane) String() string {
	return [...]string{Requests: "requests", Writes: "writes", Checks: "checks", Long: "long"}[l]
}

// A Write is one caller's change of the database. It shares a transaction with
// the writes queued at the same time. A write that fails undoes only itself.
type Write struct {
	// Org is the org that the write is for, or empty. While writes wait, orgs take
	// turns. The writes of an org are executed in the order in which they were queued.
	Org string
	// Do runs in its own savepoint. It may run again after it has failed.
	Do func(*Conn) error
	// Set is used if Do is nil. It writes Item together with the items of adjacent
	// writes in the batch that have the same Set.
	Set  Set
	Item any
	// Owners are the row ids of the orgs whose rows the write may change or depend on, if Org is
	// empty: without any, it may be those of all orgs. Independent marks a write that may run at the
	// same time as any other.
	Owners      []int64
	Independent bool
	// Probe marks the write by which the engine finds out whether a full disk has space again. Others
	// may succeed before, because they need none.
	Probe bool
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
	// Begun is called at the beginning of a transaction by an engine that several processes write
	// to, with the latest stamp that any of them gave to the orgs of the transaction. Stamp returns
	// the latest one of this process, to be stored. Stamps are Unix milliseconds.
	Begun func(stamp int64)
	Stamp func() int64
	// BeforeCommit writes the rows that the writes of the transaction have buffered.
	// If it fails, the transaction is rolled back.
	BeforeCommit func(*Conn) error
	// AfterCommit runs when the transaction is on disk, before its callers of Write
	// return.
	AfterCommit func()
	// Committed is called after each transaction, in the writer's goroutine. It may be nil.
	Committed func(Commit)
	// AfterRollback runs when a whole transaction is rolled back, before the next
	// one begins.
	AfterRollback func()
}

// A Commit says how a transaction of the writer went.
type Commit struct {
	Writes int           // callers that shared it
	Waited time.Duration // how long the first of them waited until it began
	Locked time.Duration // the part of it that it took to get the locks
	Took   time.Duration // from its begin to its end
	Synced time.Duration // the part of it that the COMMIT took, with the fsync
	Failed bool          // whether it was rolled back
}

// Stats is the state of an engine.
type Stats struct {
	// FileBytes and LogBytes are the sizes of the database and of its write-ahead log on disk. They are
	// 0 if they are not known.
	FileBytes, LogBytes int64
	// RoundTrips and Connects count what was sent to a database on another host and waited for, and
	// the connections that were made for that.
	RoundTrips, Connects uint64
	Lanes                [Lanes]LaneStats
}

// LaneStats is the state of a lane.
type LaneStats struct {
	InUse   int    // connections that read now
	Waiting int    // reads that wait for a connection
	Rows    uint64 // rows that reads have returned so far
}
