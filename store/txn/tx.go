package txn

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Part is what a room keeps in memory while it writes: rows that are not written yet, and counts
// that the writes of a transaction share. The writer's goroutine calls the functions; those that
// are nil do nothing.
type Part struct {
	// Done returns why a write is not done yet, at its end.
	Done func() error
	// Flush writes the buffered rows at the end of a write. They may refer to rows of the parts
	// that were attached before.
	Flush func(*Tx) error
	// Keep makes what the write has left count, because it succeeded. Discard drops it, because it
	// failed.
	Keep    func(*Tx)
	Discard func()
	// BeforeCommit writes what the writes of the transaction share.
	BeforeCommit func(*sqldb.Conn) error
	// AfterCommit is called when the transaction is on disk, and AfterRollback when it has failed.
	AfterCommit, AfterRollback func()
}

// A Tx is one write, or a set of writes, inside the writer's transaction.
type Tx struct {
	Reader
	// Stamp is the time in the ids of this write, by which events and attestations are
	// ordered. It is Now, or later if Now is earlier than an earlier stamp.
	Stamp ledger.Time
	// Actor is who does the administrative actions of this write.
	Actor ledger.Actor

	parts []Part
	ids   *IDs
	rows  map[string]*rowIDs // the ids of the next buffered rows, by table
}

// rowIDs are the ids from next on, below end. If asked is not nil, it returns those after them.
type rowIDs struct {
	next, end int64
	asked     func() (next, end int64, err error)
}

// Flush writes the rows that the parts have buffered, so that the write can read them. Every write
// ends with it.
func (t *Tx) Flush() error {
	for _, p := range t.parts {
		if p.Flush == nil {
			continue
		}
		if err := p.Flush(t); err != nil {
			return err
		}
	}
	return nil
}

// NewID returns a new identifier of an org with the given prefix.
func (t *Tx) NewID(orgID int64, prefix string) (string, error) {
	return t.ids.Next(orgID, prefix, t.Stamp)
}

// NextRow returns the id for a new buffered row of a table.
func (t *Tx) NextRow(table string) (int64, error) {
	ids := t.askRow(table)
	if ids.next == ids.end {
		next, end, err := ids.asked()
		if err != nil {
			return 0, fmt.Errorf("number rows of %s: %w", table, err)
		}
		ids.next, ids.end, ids.asked = next, end, nil
	}
	ids.next++
	return ids.next - 1, nil
}

// AskRows asks for the ids of tables, for a write that is going to call NextRow.
func (t *Tx) AskRows(tables ...string) {
	for _, table := range tables {
		t.askRow(table)
	}
}

// askRow returns the ids reserved for a table. If none are left, it asks for more.
func (t *Tx) askRow(table string) *rowIDs {
	ids := t.rows[table]
	if ids == nil {
		if t.rows == nil {
			t.rows = make(map[string]*rowIDs)
		}
		ids = new(rowIDs)
		t.rows[table] = ids
	}
	if ids.next == ids.end && ids.asked == nil {
		ids.asked = t.AskIDs(table)
	}
	return ids
}

// actorKey is the context key of who does what a write does.
type actorKey struct{}

// WithActor returns a context whose administrative actions are by the actor. Without one, they
// are by ledgerd itself.
func WithActor(ctx context.Context, a ledger.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who does what is done with the context.
func ActorOf(ctx context.Context) ledger.Actor {
	if a, ok := ctx.Value(actorKey{}).(ledger.Actor); ok {
		return a
	}
	return ledger.Actor{Name: "ledgerd"}
}
