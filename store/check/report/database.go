package report

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Database is a database that is checked, with what was found in it.
type Database struct {
	*Reporter
	Source store.Source
}

// Of returns a database in which nothing was found.
func Of(db store.Source) *Database {
	found := New()
	return &Database{found, source{db, found}}
}

// Tolerate reports what cannot be read as a problem, be it a part of the file or a value, and returns all
// other errors.
func (d *Database) Tolerate(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	unread, isValue := errors.AsType[*sqldb.ValueError](err)
	switch class := sqldb.ClassOf(err); {
	case class == sqldb.Failing:
		d.Problemf("file", "", "", "%s cannot be read: %v", what, err)
	case isValue:
		d.unread(unread, "so "+what+" cannot be checked")
	case class == sqldb.Other:
		d.Problemf("value", "", "", "%s cannot be checked: %v", what, err)
	default:
		return err
	}
	return nil
}

// Read runs fn in a read transaction.
func (d *Database) Read(ctx context.Context, fn func(*sqldb.Conn) error) error {
	return d.Source.Read(ctx, sqldb.Reader{Lane: sqldb.Writes}, fn)
}

// ReadEvent returns what an event says; nil if its body cannot be read.
func ReadEvent(kind ledger.EventType, text []byte) ledger.Event {
	body, err := ledger.ReadEvent(kind, text)
	if err != nil {
		return nil
	}
	return body.Event
}

// A source is a database of which values that cannot be read are problems.
type source struct {
	store.Source
	found *Reporter
}

// Read implements sqldb.Engine.
func (s source) Read(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return s.Source.Read(ctx, r, func(conn *sqldb.Conn) error {
		conn.OnUnreadable(s.found.unreadable)
		defer conn.OnUnreadable(nil)
		return fn(conn)
	})
}
