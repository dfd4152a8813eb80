package sqldb

import (
	"context"
	"database/sql"
	"errors"
)

// A Conn is a connection to a database. Only one goroutine may use it at a time.
type Conn struct {
	driver  Driver
	dialect *Dialect
	// answered reports whether the database has answered since Ready.
	answered bool
	short    bool // whether Long refuses to continue
	turns    Turns
	// ctx ends the queries of a read. That of a writer which shares its process with the database never
	// ends: to interrupt a write would roll back the whole batch.
	ctx context.Context
	// rows counts the rows that queries have returned since TakeRows.
	rows uint64
	// unreadable, if not nil, is called with each row that cannot be read. See OnUnreadable.
	unreadable func(*ValueError)
}

// NewConn returns a connection by a driver, whose SQL has a dialect.
func NewConn(d Driver, dialect *Dialect) *Conn {
	return &Conn{driver: d, dialect: dialect, ctx: context.Background()}
}

// Driver returns the driver, for what only its engine can do.
func (c *Conn) Driver() Driver { return c.driver }

// OnUnreadable has reads leave out rows with a value that cannot be read, for which they call report. With nil,
// such a row ends the read, as it does by default.
func (c *Conn) OnUnreadable(report func(*ValueError)) { c.unreadable = report }

// TakeRows returns how many rows the queries have returned since the last call.
func (c *Conn) TakeRows() uint64 {
	n := c.rows
	c.rows = 0
	return n
}

// SetContext sets the context of the statements that follow. When it ends, so do the queries, with the
// context's error.
func (c *Conn) SetContext(ctx context.Context) { c.ctx = ctx }

// KeepShort marks a connection of the lane Requests, on which long reads do not continue.
func (c *Conn) KeepShort() { c.short = true }

// ErrLong is the error of Long in a read that must begin again in the lane Long.
var ErrLong = errors.New("the read is long")

// Long announces that the read is about to examine many rows. If it returns an error, the
// read must return it, too: the engine then runs it again, when it is its turn.
func (c *Conn) Long() error {
	if c.short {
		return ErrLong
	}
	return nil
}

// Turns lets as many reads at a time examine rows as it has room for.
type Turns chan struct{}

// TakeTurns lets InTurn wait for a place in turns.
func (c *Conn) TakeTurns(turns Turns) { c.turns = turns }

// InTurn runs fn, which examines up to some hundred rows, when it is its turn. It returns
// fn's error, or that of the context if it ends before. The connections of Requests and
// Long take turns; on others, fn runs at once.
func (c *Conn) InTurn(fn func() error) error {
	if c.turns == nil {
		return fn()
	}
	select {
	case c.turns <- struct{}{}: // channels serve those who wait in the order in which they came
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	defer func() { <-c.turns }()
	return fn()
}

// Ready connects a connection that was lost or never made. It must not be called in a
// transaction.
func (c *Conn) Ready(ctx context.Context) error {
	c.answered = false
	return c.dialect.wrap(c.driver.Ready(ctx))
}

// Answered reports whether the database has answered a statement since Ready.
func (c *Conn) Answered() bool { return c.answered }

// Close closes the connection.
func (c *Conn) Close() error { return c.driver.Close() }

// Exec runs a statement that returns no rows. It returns the number of rows
// changed.
func (c *Conn) Exec(statement string, args ...any) (changed int64, err error) {
	changed, err = c.driver.Exec(c.ctx, statement, args)
	c.answered = c.answered || err == nil
	return changed, c.dialect.wrap(err)
}

// Queue runs a statement that returns no rows, at the latest before the next statement that is
// not queued: engines on another host get several of them in one round trip. An error is then
// that of the next statement, or of Send.
func (c *Conn) Queue(statement string, args ...any) error {
	return c.dialect.wrap(c.driver.Queue(statement, args))
}

// Send runs the queued statements.
func (c *Conn) Send() error { return c.dialect.wrap(c.driver.Send(c.ctx)) }

// Run runs a script of one or more statements without preparing them.
func (c *Conn) Run(script string) error { return c.dialect.wrap(c.driver.Run(c.ctx, script)) }

// Insert runs an INSERT into a table with a column id, and returns the id of the
// new row.
func (c *Conn) Insert(statement string, args ...any) (id int64, err error) {
	err = c.Row(statement+" RETURNING id", args...).Scan(&id)
	return id, err
}

// Row runs a query for at most one row. Its Scan returns sql.ErrNoRows if the
// query returns no row. The query is not interrupted: use it for queries that
// examine few rows.
func (c *Conn) Row(query string, args ...any) Scanner {
	if err := c.ctx.Err(); err != nil {
		return failedRow{err}
	}
	rows, err := c.driver.Query(c.ctx, query, args)
	return c.first(rows, err, query)
}

// first returns the first row of a query, whose error is err.
func (c *Conn) first(rows Result, err error, query string) Scanner {
	var row Scanner = firstRow{rows, c}
	if err != nil {
		row = failedRow{c.dialect.wrap(err)}
	}
	if c.unreadable != nil {
		return singleRow{row, query}
	}
	return row
}

// A firstRow is the first row of a query.
type firstRow struct {
	rows Result
	conn *Conn
}

func (r firstRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if r.rows.Next() {
		r.conn.answered = true
		if err := r.rows.Scan(dest...); err != nil {
			return err
		}
		return r.conn.dialect.wrap(r.rows.Close())
	}
	if err := r.rows.Err(); err != nil {
		return r.conn.dialect.wrap(err)
	}
	r.conn.answered = true
	return sql.ErrNoRows
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// Each runs a query and calls visit for each row. If visit returns an error, Each
// stops and returns it. It also stops between two rows if the context of the
// connection ends.
func (c *Conn) Each(visit func(Scanner) error, query string, args ...any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	rows, err := c.driver.Query(c.ctx, query, args)
	return c.visit(rows, err, visit, query)
}

// EachLong is like Each, for a query that may examine many rows before it returns
// the first: if the context of the connection ends, the database interrupts it. That
// costs some microseconds.
func (c *Conn) EachLong(visit func(Scanner) error, query string, args ...any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	rows, err := c.driver.QueryLong(c.ctx, query, args)
	return c.visit(rows, err, visit, query)
}

// visit visits the rows of a query, whose error is err, and closes them.
func (c *Conn) visit(rows Result, err error, visit func(Scanner) error, query string) error {
	if err != nil {
		return c.dialect.wrap(err)
	}
	defer rows.Close()
	visit = c.visiting(visit, query)
	for rows.Next() {
		c.rows++
		c.answered = true
		if err := visit(rows); err != nil {
			return err
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	return c.dialect.wrap(rows.Err())
}

// visiting returns a function that visits the rows of a query, and leaves out those that cannot be read if the
// connection does.
func (c *Conn) visiting(visit func(Scanner) error, query string) func(Scanner) error {
	if c.unreadable == nil {
		return visit
	}
	return func(row Scanner) error {
		r := &checkedRow{Scanner: row, query: query}
		err := visit(r)
		switch _, isKnown := errors.AsType[*ValueError](err); {
		case err == nil || c.ctx.Err() != nil || ClassOf(err) != Other || errors.Is(err, ErrLong):
			return err
		case r.failed != nil:
			c.unreadable(r.failed)
			return nil
		case isKnown: // of another query
			return err
		}
		return r.error(err)
	}
}

// All runs a query and returns its rows, each read by scan.
func All[T any](c *Conn, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	return ScanAll(func(visit func(Scanner) error) error { return c.Each(visit, query, args...) }, scan)
}

// ScanAll returns the rows that each visits, each read by scan.
func ScanAll[T any](each func(visit func(Scanner) error) error, scan func(Scanner) (T, error)) ([]T, error) {
	var list []T
	err := each(func(row Scanner) error {
		v, err := scan(row)
		if err == nil {
			list = append(list, v)
		}
		return err
	})
	return list, err
}
