// Package engine holds what the database engines have in common: the writer with its queue, the
// lanes of readers, and the health. It knows no SQL but that of savepoints.
package engine

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Core has the methods that all engines implement alike, on their readers and their writer. The
// writer and the monitor are nil if the database is only read.
type Core struct {
	Readers Readers
	Writer  *Writer
	Monitor *Monitor
	Closing chan struct{} // closed when the engine is
}

// errReadOnly is the error of a write to a database that is only read.
var errReadOnly = errors.New("the database is open for reading only")

// Read implements sqldb.Engine.
func (c *Core) Read(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return c.Readers.Read(ctx, r, fn)
}

// ReadLoose implements sqldb.Engine.
func (c *Core) ReadLoose(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return c.Readers.ReadLoose(ctx, r, fn)
}

// Write implements sqldb.Engine.
func (c *Core) Write(ctx context.Context, w sqldb.Write) error {
	if c.Writer == nil {
		return errReadOnly
	}
	return c.Writer.Write(ctx, w)
}

// TryWrite implements sqldb.Engine.
func (c *Core) TryWrite(w sqldb.Write) bool { return c.Writer != nil && c.Writer.TryWrite(w) }

// WaitTurn implements sqldb.Engine.
func (c *Core) WaitTurn(ctx context.Context) error {
	if c.Writer == nil {
		return errReadOnly
	}
	return c.Writer.WaitTurn(ctx)
}

// Ready implements sqldb.Engine.
func (c *Core) Ready() error {
	select {
	case <-c.Closing:
		return sqldb.ErrClosed
	default:
	}
	if c.Monitor == nil {
		return nil
	}
	return c.Monitor.Ready()
}
