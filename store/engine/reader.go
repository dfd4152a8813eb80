package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Readers are the lanes of an engine.
type Readers struct {
	Lanes [sqldb.Lanes]*Pool
	// Begin begins a transaction that reads from one snapshot.
	Begin string
	// MaxRead is the maximum time that a read for a caller waits and runs, by lane. Background
	// work, whose reads have no org, has no limit in the lane Writes.
	MaxRead [sqldb.Lanes]time.Duration
	Health  *Health
}

// MaxRead is the maximum time that reads take in a server.
func MaxRead() [sqldb.Lanes]time.Duration {
	return [sqldb.Lanes]time.Duration{
		sqldb.Requests: 5 * time.Second, sqldb.Long: 5 * time.Second, sqldb.Checks: 5 * time.Second,
		sqldb.Writes: 10 * time.Second,
	}
}

// Read implements sqldb.Engine.
func (rs *Readers) Read(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return rs.read(ctx, r, func(ctx context.Context, c *sqldb.Conn) (err error) {
		if err := c.Queue(rs.Begin); err != nil {
			return fmt.Errorf("begin read transaction: %w", err)
		}
		defer func() { // deferred in case fn panics
			if _, endErr := c.Exec("ROLLBACK"); endErr != nil {
				err = errors.Join(err, fmt.Errorf("end read transaction: %w", endErr))
			}
		}()
		return during(ctx, c, fn)
	})
}

// ReadLoose implements sqldb.Engine.
func (rs *Readers) ReadLoose(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return rs.read(ctx, r, func(ctx context.Context, c *sqldb.Conn) error { return during(ctx, c, fn) })
}

// errSlow is the cause of a context that ends because a read takes too long.
var errSlow = errors.New("the read took too long")

// read runs fn on a connection of the reader's lane, and again in the lane Long if it is
// long. The context of fn ends at the lane's time limit.
func (rs *Readers) read(
	ctx context.Context, r sqldb.Reader, fn func(context.Context, *sqldb.Conn) error,
) error {
	if r.Lane != sqldb.Writes || r.Org != "" {
		limited, cancel := context.WithTimeoutCause(ctx, rs.MaxRead[r.Lane], errSlow)
		defer cancel()
		ctx = limited
	}

	err := rs.readIn(ctx, r, fn)
	if errors.Is(err, sqldb.ErrLong) {
		r.Lane = sqldb.Long
		err = rs.readIn(ctx, r, fn)
	}
	if err != nil && context.Cause(ctx) == errSlow { //nolint:errorlint // a cause is not wrapped
		return &sqldb.Error{Class: sqldb.Slow, Err: err}
	}
	return err
}

// readIn runs fn on a connection of the reader's lane.
func (rs *Readers) readIn(ctx context.Context, r sqldb.Reader, fn func(context.Context, *sqldb.Conn) error) error {
	lane := rs.Lanes[r.Lane]
	c, err := lane.Take(ctx, r.Org)
	if err != nil {
		return err
	}
	defer lane.Put(c)
	if err = c.Ready(ctx); err == nil {
		err = fn(ctx, c)
	}
	// The connection may have been lost long ago. fn has seen nothing then, and can run again.
	if sqldb.ClassOf(err) == sqldb.Unreachable && !c.Answered() && ctx.Err() == nil {
		if err = c.Ready(ctx); err == nil {
			err = fn(ctx, c)
		}
	}
	rs.Judge(err)
	return err
}

// Judge records in the health whether the storage could be read.
func (rs *Readers) Judge(err error) {
	switch sqldb.ClassOf(err) {
	case sqldb.Failing, sqldb.Unreachable:
		rs.Health.Failed(sqldb.ReadIncident, err)
	case sqldb.Other:
		if err == nil {
			rs.Health.Succeeded(sqldb.ReadIncident)
		}
	}
}

// during runs fn on a connection whose queries end with ctx.
func during(ctx context.Context, c *sqldb.Conn, fn func(*sqldb.Conn) error) error {
	c.SetContext(ctx)
	defer c.SetContext(context.Background())
	return fn(c)
}

// Stats returns the states of the lanes.
func (rs *Readers) Stats() (s [sqldb.Lanes]sqldb.LaneStats) {
	for lane := range rs.Lanes {
		s[lane] = rs.Lanes[lane].Stats()
	}
	return s
}

// Close waits for the reads that are running, and closes the connections.
func (rs *Readers) Close() error {
	var errs []error
	for _, lane := range rs.Lanes {
		errs = append(errs, lane.Close())
	}
	return errors.Join(errs...)
}
