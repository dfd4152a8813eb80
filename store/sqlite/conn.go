package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// maxPrepared is the maximum number of prepared statements per connection. In
// practice the limit is not reached, because few statements have several forms.
const maxPrepared = 1000

// A conn is a connection with its prepared statements. It implements sqldb.Driver. Only QueryLong ends with
// its context: the others take little time, or write.
type conn struct {
	pool    *sql.DB
	check   func() error // whether the file is still there
	sql     *sql.Conn    // nil until Ready takes it from the pool
	stmts   map[string]*sql.Stmt
	reading int // the number of queries whose rows are being read
}

// Connect takes a connection from the pool of db.
func Connect(ctx context.Context, db *sql.DB) (*sqldb.Conn, error) {
	c := connectLater(db, func() error { return nil })
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// connectLater returns a connection that Ready takes from the pool of db, unless check returns an error
// before or after.
func connectLater(db *sql.DB, check func() error) *sqldb.Conn {
	return sqldb.NewConn(&conn{pool: db, check: check, stmts: make(map[string]*sql.Stmt)}, &dialect)
}

// Raw calls fn with the connection of the driver below a connection of this engine.
func Raw(c *sqldb.Conn, fn func(driverConn any) error) error { return connOf(c).sql.Raw(fn) }

// Forget closes the prepared statements of a connection of this engine, and returns them as written. Tests
// see by them what a program has run.
func Forget(c *sqldb.Conn) (statements []string) {
	for statement := range connOf(c).stmts {
		statements = append(statements, statement)
	}
	connOf(c).closeStatements()
	return statements
}

// Plan returns the steps of the query plan of a statement on a connection of this engine, for tests.
func Plan(c *sqldb.Conn, statement string) ([]string, error) {
	args := make([]any, strings.Count(statement, "?")+9) // at least as many as the parameters, up to ?9
	return sqldb.All(c, func(row sqldb.Scanner) (step string, err error) {
		return step, row.Scan(new(any), new(any), new(any), &step)
	}, "EXPLAIN QUERY PLAN "+statement, args...)
}

func connOf(c *sqldb.Conn) *conn { return c.Driver().(*conn) }

// Ready implements sqldb.Driver.
func (c *conn) Ready(ctx context.Context) error {
	if c.sql != nil {
		return nil
	}
	if err := c.check(); err != nil {
		return err
	}
	taken, err := c.pool.Conn(ctx)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return errors.Join(err, taken.Close())
	}
	c.sql = taken
	return nil
}

// Close implements sqldb.Driver.
func (c *conn) Close() error {
	c.closeStatements()
	if c.sql == nil {
		return nil
	}
	return c.sql.Close()
}

// closeStatements closes the prepared statements. They are prepared again when they run.
func (c *conn) closeStatements() {
	for _, stmt := range c.stmts {
		_ = stmt.Close()
	}
	clear(c.stmts)
}

func (c *conn) prepare(statement string) (*sql.Stmt, error) {
	if stmt, ok := c.stmts[statement]; ok {
		return stmt, nil
	}
	if len(c.stmts) >= maxPrepared && c.reading == 0 { // a statement in use must stay open
		c.closeStatements()
	}
	stmt, err := c.sql.PrepareContext(context.Background(), dialect.SQL(statement))
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", statement, err)
	}
	c.stmts[statement] = stmt
	return stmt, nil
}

// Exec implements sqldb.Driver.
func (c *conn) Exec(_ context.Context, statement string, args []any) (changed int64, err error) {
	stmt, err := c.prepare(statement)
	if err != nil {
		return 0, err
	}
	result, err := stmt.Exec(args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query implements sqldb.Driver.
func (c *conn) Query(_ context.Context, query string, args []any) (sqldb.Result, error) {
	return c.QueryLong(context.Background(), query, args)
}

// QueryLong implements sqldb.Driver.
func (c *conn) QueryLong(ctx context.Context, query string, args []any) (sqldb.Result, error) {
	stmt, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	result, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	c.reading++
	return &rows{result, c}, nil
}

// Rows are the rows of a query. They keep its statement open.
type rows struct {
	*sql.Rows
	conn *conn // nil once they are closed
}

// Close implements sqldb.Result.
func (r *rows) Close() error {
	if r.conn != nil {
		r.conn.reading--
		r.conn = nil
	}
	return r.Rows.Close()
}

// Ask implements sqldb.Driver. There is nobody to wait for, so the answer runs the query.
func (c *conn) Ask(query string, args []any) sqldb.Answer {
	return func(ctx context.Context) (sqldb.Result, error) { return c.Query(ctx, query, args) }
}

// Queue implements sqldb.Driver. It runs the statement.
func (c *conn) Queue(statement string, args []any) error {
	_, err := c.Exec(context.Background(), statement, args)
	return err
}

// Send implements sqldb.Driver. Nothing is queued.
func (c *conn) Send(context.Context) error { return nil }

// Rows implements sqldb.Driver.
func (c *conn) Rows(insert, conflict string, columns int, args []any) (statement string, first, rest []any) {
	return sqldb.TupleRows(insert, conflict, columns, args)
}

// List implements sqldb.Driver.
func (c *conn) List(query string, columns int, keys []any) (list string, first, rest []any) {
	return sqldb.TupleList(query, columns, keys)
}

// Run implements sqldb.Driver.
func (c *conn) Run(_ context.Context, script string) error {
	_, err := c.sql.ExecContext(context.Background(), script)
	return err
}
