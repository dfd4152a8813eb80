package txn

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/internal/cursor"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A DB is an open database with the ledger's clock, and with the parts that the rooms keep in
// memory while they write.
type DB struct {
	sqldb.Engine
	Clock *Clock
	Log   *slog.Logger

	parts     []Part
	orgOfRepo *Cache[int64, int64] // row ids
	ids       *IDs                 // used by the writer's goroutine only
	cursors   *cursor.Sealer       // set by OpenCursors
}

// maxRepos limits the repos whose org is remembered.
const maxRepos = 10_000

// NewDB returns a DB that logs to log. Its engine and its clock are set before it is used.
func NewDB(log *slog.Logger) *DB {
	return &DB{Log: log, ids: newIDs(), orgOfRepo: NewCache[int64, int64](maxRepos)}
}

// OpenCursors makes the key with which cursors are sealed known. All servers of a database use the
// same.
func (db *DB) OpenCursors(ctx context.Context) (err error) {
	db.cursors, err = ReadLoose(ctx, db, ForWrite(""), func(rd Reader) (*cursor.Sealer, error) {
		var key []byte
		if err := rd.Row("SELECT key FROM cursor_key").Scan(&key); err != nil {
			return nil, err
		}
		return cursor.New(key)
	})
	return err
}

// Attach adds a part, before the database is opened.
func (db *DB) Attach(p Part) { db.parts = append(db.parts, p) }

// Hooks returns the functions that the engine calls around each transaction of the writer.
// committed may be nil.
func (db *DB) Hooks(committed func(sqldb.Commit)) sqldb.Hooks {
	return sqldb.Hooks{
		Begun:         func(stamp int64) { db.Clock.Follow(ledger.Time(stamp)) },
		Stamp:         func() int64 { return int64(db.Clock.LastStamp()) },
		BeforeCommit:  db.beforeCommit,
		Committed:     committed,
		AfterCommit:   func() { db.each(func(p Part) func() { return p.AfterCommit }) },
		AfterRollback: func() { db.each(func(p Part) func() { return p.AfterRollback }) },
	}
}

func (db *DB) beforeCommit(c *sqldb.Conn) error {
	for _, p := range db.parts {
		if p.BeforeCommit == nil {
			continue
		}
		if err := p.BeforeCommit(c); err != nil {
			return err
		}
	}
	return nil
}

// each calls one function of all parts that have it.
func (db *DB) each(function func(Part) func()) {
	for _, p := range db.parts {
		if f := function(p); f != nil {
			f()
		}
	}
}

// Do runs fn as one write of the transaction on c, and flushes the parts.
func (db *DB) Do(c *sqldb.Conn, fn func(*Tx) error) error {
	rd := db.NewReader(c)
	rd.Writes = true
	t := &Tx{Reader: rd, Stamp: db.Clock.Next(rd.Now), ids: db.ids, parts: db.parts}
	done := false
	defer func() { // also if fn panics
		if !done {
			db.each(func(p Part) func() { return p.Discard })
		}
	}()

	if err := fn(t); err != nil {
		return err
	}
	if err := db.done(); err != nil {
		return err
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := t.Send(); err != nil { // only then may what the write has left count
		return fmt.Errorf("write rows: %w", err)
	}

	for _, p := range db.parts {
		if p.Keep != nil {
			p.Keep(t)
		}
	}
	done = true
	return nil
}

// done returns why the write that runs is not done.
func (db *DB) done() error {
	for _, p := range db.parts {
		if p.Done == nil {
			continue
		}
		if err := p.Done(); err != nil {
			return err
		}
	}
	return nil
}

// Admit returns why a write of a request in an org is refused because of the clock, or nil.
// What goes on without an org, such as the deliveries of webhooks or the note of a restore, has the
// ledger's time.
func (db *DB) Admit(org string) error {
	if org == "" {
		return nil
	}
	return db.Clock.Refusal()
}

// NewReader returns a reader on a connection that the caller has opened.
func (db *DB) NewReader(c *sqldb.Conn) Reader {
	return Reader{Conn: c, Now: db.Clock.Now(), cursors: db.cursors}
}

// ByOrg describes the reads of a caller's request in an org.
func ByOrg(org string) sqldb.Reader { return sqldb.Reader{Lane: sqldb.Requests, Org: org} }

// ForWrite describes the reads that belong to a write in an org, or to background work if
// org is empty.
func ForWrite(org string) sqldb.Reader { return sqldb.Reader{Lane: sqldb.Writes, Org: org} }

// ForCheck describes the lookups by key that every request needs.
func ForCheck() sqldb.Reader { return sqldb.Reader{Lane: sqldb.Checks} }

// Read runs fn in a read transaction: fn sees a consistent snapshot.
func Read[T any](ctx context.Context, db *DB, by sqldb.Reader, fn func(Reader) (T, error)) (v T, err error) {
	err = db.Engine.Read(ctx, by, func(c *sqldb.Conn) (err error) {
		v, err = fn(db.NewReader(c))
		return err
	})
	return v, StorageError(err)
}

// ReadLoose is like Read, but without a transaction, which saves time in every
// request. It is for an fn that runs one statement, or does not need a consistent
// snapshot.
func ReadLoose[T any](ctx context.Context, db *DB, by sqldb.Reader, fn func(Reader) (T, error)) (v T, err error) {
	err = db.Engine.ReadLoose(ctx, by, func(c *sqldb.Conn) (err error) {
		v, err = fn(db.NewReader(c))
		return err
	})
	return v, StorageError(err)
}

// Write runs fn in the writer's next transaction, with the options in w, whose Do it sets. If w has
// an org, it is a request, which is refused while the system clock is off.
func Write[T any](ctx context.Context, db *DB, w sqldb.Write, fn func(*Tx) (T, error)) (v T, err error) {
	if err := db.Admit(w.Org); err != nil {
		return v, err
	}
	w.Do = func(c *sqldb.Conn) error {
		return db.Do(c, func(t *Tx) (err error) {
			t.Actor = ActorOf(ctx)
			v, err = fn(t)
			return err
		})
	}
	err = db.Engine.Write(ctx, w)
	return v, StorageError(err)
}

// Change is like Write, for an fn that returns no value. org is the org of the caller's request, or
// empty for background work.
func (db *DB) Change(ctx context.Context, org string, fn func(*Tx) error) error {
	return db.change(ctx, sqldb.Write{Org: org}, fn)
}

// WriteFor runs fn in the writer's next transaction, as background work about some orgs.
func (db *DB) WriteFor(ctx context.Context, owners []int64, fn func(*Tx) error) error {
	return db.change(ctx, sqldb.Write{Owners: owners}, fn)
}

// Repeat runs batch in consecutive writes, with the options in w, until it reports that it was the last.
func (db *DB) Repeat(ctx context.Context, w sqldb.Write, batch func(*Tx) (last bool, err error)) error {
	for {
		last, err := Write(ctx, db, w, batch)
		if err != nil || last {
			return err
		}
	}
}

func (db *DB) change(ctx context.Context, w sqldb.Write, fn func(*Tx) error) error {
	_, err := Write(ctx, db, w, func(t *Tx) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}
