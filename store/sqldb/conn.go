package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// maxPrepared is the maximum number of prepared statements per connection. In
// practice the limit is not reached, because few statements have several forms.
const maxPrepared = 1000

// A Conn is a connection with its prepared statements. Only one goroutine may use
// it at a time.
type Conn struct {
	dialect *Dialect
	// Either sql with its prepared statements, or native with the statements in its syntax. Until Ready
	// takes sql from the pool, it is nil.
	sql    *sql.Conn
	pool   *sql.DB
	check  func() error
	stmts  map[string]*sql.Stmt
	native Native
	texts  map[string]string
	// answered reports whether the native connection has had a result since Ready.
	answered bool
	reading  int  // the number of queries whose rows are being read
	short    bool // whether Long refuses to continue
	turns    Turns
	// ctx ends the queries of a read. The writer's connection always has the
	// background context: to interrupt a write would roll back the whole batch.
	ctx context.Context
	// rows counts the rows that queries have returned since TakeRows.
	rows uint64
	// unreadable, if not nil, is called with each row that cannot be read. See OnUnreadable.
	unreadable func(*ValueError)
}

// OnUnreadable has reads leave out rows with a value that cannot be read, for which they call report. With nil,
// such a row ends the read, as it does by default.
func (c *Conn) OnUnreadable(report func(*ValueError)) { c.unreadable = report }

// TakeRows returns how many rows the queries have returned since the last call.
func (c *Conn) TakeRows() uint64 {
	n := c.rows
	c.rows = 0
	return n
}

// Connect takes a connection from the pool of db.
func Connect(ctx context.Context, db *sql.DB, dialect *Dialect) (*Conn, error) {
	c := ConnectLater(db, dialect, func() error { return nil })
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// ConnectLater returns a connection that Ready takes from the pool of db, unless check returns an error
// before or after.
func ConnectLater(db *sql.DB, dialect *Dialect, check func() error) *Conn {
	return &Conn{
		pool: db, check: check, dialect: dialect, stmts: make(map[string]*sql.Stmt), ctx: context.Background(),
	}
}

// NewNative returns a connection without database/sql.
func NewNative(native Native, dialect *Dialect) *Conn {
	return &Conn{native: native, dialect: dialect, texts: make(map[string]string), ctx: context.Background()}
}

// SetContext sets the context of the queries that follow. When it ends, so do the
// queries, with the context's error. Only connections that read may have a context
// that ends.
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

// Ready connects a connection that was lost or never made. It must not be called in a
// transaction.
func (c *Conn) Ready(ctx context.Context) error {
	if c.native == nil {
		return c.dialect.wrap(c.takeFromPool(ctx))
	}
	c.answered = false
	return c.dialect.wrap(c.native.Ready(ctx))
}

func (c *Conn) takeFromPool(ctx context.Context) error {
	if c.sql != nil {
		return nil
	}
	if err := c.check(); err != nil {
		return err
	}
	conn, err := c.pool.Conn(ctx)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return errors.Join(err, conn.Close())
	}
	c.sql = conn
	return nil
}

// Answered reports whether the database has answered a statement since Ready.
func (c *Conn) Answered() bool { return c.answered }

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

// Close closes the prepared statements and the connection.
func (c *Conn) Close() error {
	if c.native != nil {
		return c.native.Close()
	}
	c.CloseStatements()
	if c.sql == nil {
		return nil
	}
	return c.sql.Close()
}

// CloseStatements closes the prepared statements. They are prepared again when they run.
func (c *Conn) CloseStatements() {
	for _, stmt := range c.stmts {
		_ = stmt.Close()
	}
	clear(c.stmts)
}

func (c *Conn) prepare(statement string) (*sql.Stmt, error) {
	if stmt, ok := c.stmts[statement]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxPrepared && c.reading == 0 { // a statement in use must stay open
		c.CloseStatements()
	}
	stmt, err := c.sql.PrepareContext(context.Background(), c.dialect.SQL(statement))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", statement, c.dialect.wrap(err))
	}
	c.stmts[statement] = stmt
	return stmt, nil
}

// Exec runs a statement that returns no rows. It returns the number of rows
// changed.
func (c *Conn) Exec(statement string, args ...any) (changed int64, err error) {
	if c.native != nil {
		changed, err = c.native.Exec(c.ctx, c.text(statement), args)
		c.answered = c.answered || err == nil
		return changed, c.dialect.wrap(err)
	}
	stmt, err := c.prepare(statement)
	if err != nil {
		return 0, err
	}
	result, err := stmt.Exec(args...)
	if err != nil {
		return 0, c.dialect.wrap(err)
	}
	return result.RowsAffected()
}

// text returns a statement in the syntax of the engine.
func (c *Conn) text(statement string) string {
	text, ok := c.texts[statement]
	if !ok {
		if len(c.texts) >= maxPrepared {
			clear(c.texts)
		}
		text = c.dialect.SQL(statement)
		c.texts[statement] = text
	}
	return text
}

// Queue runs a statement that returns no rows, at the latest before the next statement that is
// not queued: engines on another host get several of them in one round trip. An error is then
// that of the next statement, or of Send.
func (c *Conn) Queue(statement string, args ...any) error {
	if c.native != nil {
		c.native.Queue(c.text(statement), args)
		return nil
	}
	_, err := c.Exec(statement, args...)
	return err
}

// Ahead announces a query of few rows that is going to be run with the same arguments, with nothing
// changed before. Engines on another host get it together with the next statement. To run it is
// faster then; not to run it is no error.
func (c *Conn) Ahead(query string, args ...any) {
	if c.native != nil {
		c.native.Ahead(c.text(query), args)
	}
}

// Send runs the queued statements.
func (c *Conn) Send() error {
	if c.native == nil {
		return nil
	}
	return c.dialect.wrap(c.native.Send(c.ctx))
}

// Run runs a script of one or more statements without preparing them.
func (c *Conn) Run(script string) error {
	if c.native != nil {
		return c.dialect.wrap(c.native.Run(c.ctx, script))
	}
	_, err := c.sql.ExecContext(context.Background(), script)
	return c.dialect.wrap(err)
}

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
	if c.unreadable != nil {
		return singleRow{c.row(query, args), query}
	}
	return c.row(query, args)
}

func (c *Conn) row(query string, args []any) Scanner {
	if c.native != nil {
		rows, err := c.native.Query(c.ctx, c.text(query), args)
		if err != nil {
			return failedRow{c.dialect.wrap(err)}
		}
		return firstRow{rows, c}
	}
	stmt, err := c.prepare(query)
	if err != nil {
		return failedRow{err}
	}
	return row{stmt.QueryRow(args...), c.dialect}
}

type row struct {
	*sql.Row
	dialect *Dialect
}

func (r row) Scan(dest ...any) error { return r.dialect.wrap(r.Row.Scan(dest...)) }

// A firstRow is the first row of a query.
type firstRow struct {
	rows Result
	conn *Conn
}

func (r firstRow) Scan(dest ...any) (err error) {
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
	return c.each(context.Background(), visit, query, args)
}

// EachLong is like Each, for a query that may examine many rows before it returns
// the first: if the context of the connection ends, the database interrupts it. That
// costs some microseconds.
func (c *Conn) EachLong(visit func(Scanner) error, query string, args ...any) error {
	return c.each(c.ctx, visit, query, args)
}

// each runs a query under ctx, which is the context of the connection or never ends.
func (c *Conn) each(ctx context.Context, visit func(Scanner) error, query string, args []any) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	rows, err := c.query(ctx, query, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	c.reading++
	defer func() { c.reading-- }()

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

func (c *Conn) query(ctx context.Context, query string, args []any) (Result, error) {
	if c.native != nil {
		rows, err := c.native.Query(c.ctx, c.text(query), args)
		return rows, c.dialect.wrap(err)
	}
	stmt, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	return rows, c.dialect.wrap(err)
}

// All runs a query and returns its rows, each read by scan.
func All[T any](c *Conn, scan func(Scanner) (T, error), query string, args ...any) ([]T, error) {
	var list []T
	err := c.Each(func(row Scanner) error {
		v, err := scan(row)
		if err == nil {
			list = append(list, v)
		}
		return err
	}, query, args...)
	return list, err
}

// NextIDs returns the id of the next row of a table, and the first one after it that is not
// reserved. Only the writer may call it.
func (c *Conn) NextIDs(table string) (next, end int64, err error) {
	err = c.Row(c.dialect.NextID + table).Scan(&next)
	if c.dialect.IDs == 0 {
		return next, math.MaxInt64, err
	}
	return next, next + c.dialect.IDs, err
}

// AheadIDs announces NextIDs of a table.
func (c *Conn) AheadIDs(table string) { c.Ahead(c.dialect.NextID + table) }

// Raw calls fn with the connection of the driver.
func (c *Conn) Raw(fn func(driverConn any) error) error { return c.sql.Raw(fn) }

// Statements returns the prepared statements as written, before they are
// translated to the dialect.
func (c *Conn) Statements() []string {
	return append(slices.Collect(maps.Keys(c.stmts)), slices.Collect(maps.Keys(c.texts))...)
}

// Plan returns the steps of the engine's query plan for a statement.
func (c *Conn) Plan(statement string) ([]string, error) {
	if c.native != nil {
		return nil, errors.New("plans depend on statistics")
	}
	var steps []string
	explain := c.dialect.Explain + c.dialect.SQL(statement)
	rows, err := c.sql.QueryContext(context.Background(), explain, make([]any, parameters(statement))...)
	if err != nil {
		return nil, c.dialect.wrap(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}

	row := make([]any, len(columns))
	for i := range row {
		row[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(row...); err != nil {
			return nil, err
		}
		steps = append(steps, fmt.Sprint(*row[len(row)-1].(*any))) // the last column is the text
	}
	return steps, rows.Err()
}

// parameters returns the number of parameters of a statement, written ? or ?1 to
// ?9.
func parameters(statement string) int {
	plain, numbered := 0, 0
	for i := range len(statement) {
		if statement[i] != '?' {
			continue
		}
		if i+1 < len(statement) && statement[i+1] >= '1' && statement[i+1] <= '9' {
			numbered = max(numbered, int(statement[i+1]-'0'))
		} else {
			plain++
		}
	}
	return plain + numbered
}
