package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A conn is a connection that connects when it is needed. It implements sqldb.Driver.
type conn struct {
	hosts   *hosts
	traffic *traffic
	pgx     *pgx.Conn
	types   types      // of the columns, for Rows; nil on a connection that only reads
	guard   *guard     // of its COMMITs; nil on a connection that only reads
	queue   *pgx.Batch // what has not been sent; nil if there is nothing
	open    *rows      // of which not all are read
	changes int        // how often something may have changed what a query returns

	texts   map[string]string     // of statements as written, in the syntax of PostgreSQL
	inserts map[string]*inserting // by the text of the statement
}

// maxTexts is the maximum number of statements whose syntax a connection remembers. In practice the limit
// is not reached.
const maxTexts = 1000

// traffic counts what the connections of a process do.
type traffic struct{ trips, connects atomic.Uint64 }

// errNotConnected is the error of statements after Ready has failed.
var errNotConnected = &sqldb.Error{Class: sqldb.Unreachable, Err: errors.New("there is no connection to the database")}

// Ready implements sqldb.Driver.
func (c *conn) Ready(ctx context.Context) (err error) {
	c.queue = nil // of the one who had the connection before
	c.changes++
	if c.pgx != nil && c.pgx.PgConn().IsBusy() { // a query was abandoned in the middle
		hangUp(c.pgx)
	}
	if c.pgx != nil && !c.pgx.IsClosed() {
		if c.guard != nil {
			c.guard.committing.Store(false) // in case the last COMMIT failed
		}
		return nil
	}
	c.open = nil
	c.traffic.connects.Add(1)
	if c.guard == nil {
		c.pgx, _, err = c.hosts.connect(ctx, nil)
		return err
	}
	c.guard = new(guard) // the driver may still use that of the connection before
	c.pgx, _, err = c.hosts.connect(ctx, c.guard.configure)
	return err
}

// wasLost reports whether the connection was lost.
func (c *conn) wasLost() bool { return c.pgx != nil && c.pgx.IsClosed() }

// Close implements sqldb.Driver.
func (c *conn) Close() error {
	hangUp(c.pgx)
	return nil
}

// text returns a statement in the syntax of PostgreSQL, which it remembers.
func (c *conn) text(statement string) string {
	text, ok := c.texts[statement]
	if !ok {
		if c.texts == nil || len(c.texts) >= maxTexts {
			c.texts = make(map[string]string)
		}
		text = dialect.SQL(statement)
		c.texts[statement] = text
	}
	return text
}

// Queue implements sqldb.Driver.
func (c *conn) Queue(statement string, args []any) error {
	c.change().Queue(c.text(statement), arguments(args)...)
	return nil
}

// change returns the queue, for a statement that may change what a query returns.
func (c *conn) change() *pgx.Batch {
	c.changes++
	return c.queued()
}

// queued returns the queue.
func (c *conn) queued() *pgx.Batch {
	if c.queue == nil {
		c.queue = new(pgx.Batch)
	}
	return c.queue
}

// take takes the queue, and makes the connection free for it.
func (c *conn) take() (batch *pgx.Batch, err error) {
	if c.pgx == nil {
		return nil, errNotConnected
	}
	if c.open != nil {
		if err := c.open.buffer(); err != nil {
			return nil, err
		}
		c.open = nil
	}
	batch, c.queue = c.queue, nil
	c.traffic.trips.Add(1) // what the caller does now
	return batch, nil
}

// Send implements sqldb.Driver.
func (c *conn) Send(ctx context.Context) error {
	if c.queue == nil {
		return nil
	}
	batch, err := c.take()
	if err != nil {
		return err
	}
	return c.pgx.SendBatch(ctx, batch).Close()
}

// Exec implements sqldb.Driver.
func (c *conn) Exec(ctx context.Context, statement string, args []any) (changed int64, err error) {
	c.change().Queue(c.text(statement), arguments(args)...).Exec(func(tag pgconn.CommandTag) error {
		changed = tag.RowsAffected()
		return nil
	})
	err = c.Send(ctx)
	return changed, err
}

// Run implements sqldb.Driver.
func (c *conn) Run(ctx context.Context, script string) error {
	c.changes++
	if err := c.Send(ctx); err != nil {
		return err
	}
	if _, err := c.take(); err != nil { // no statement is queued, but rows may be open
		return err
	}
	_, err := c.pgx.PgConn().Exec(ctx, script).ReadAll()
	return err
}

// Query implements sqldb.Driver.
func (c *conn) Query(ctx context.Context, query string, args []any) (sqldb.Result, error) {
	query, args = c.text(query), arguments(args)
	if strings.Contains(query, " RETURNING ") { // it changes something, too
		c.changes++
	}
	batch, err := c.take()
	if err != nil {
		return nil, err
	}
	r := &rows{conn: c, types: c.pgx.TypeMap()}
	if batch == nil {
		r.rows, err = c.pgx.Query(ctx, query, args...)
	} else {
		err = r.queryAfter(ctx, batch, query, args)
	}
	if err != nil {
		return nil, err
	}
	r.fields = slices.Clone(r.rows.FieldDescriptions()) // the next query overwrites them
	c.open = r
	return r, nil
}

// QueryLong implements sqldb.Driver.
func (c *conn) QueryLong(ctx context.Context, query string, args []any) (sqldb.Result, error) {
	return c.Query(ctx, query, args)
}

// A rows is the result of a query. Its rows are read from the connection, and if that is needed
// for another statement, into memory first.
type rows struct {
	conn   *conn
	types  *pgtype.Map
	rows   pgx.Rows
	batch  pgx.BatchResults // if statements were sent with the query
	fields []pgconn.FieldDescription

	buffered [][][]byte
	isAll    bool // whether the rest is buffered
	current  [][]byte
	err      error
}

// queryAfter sends a query together with statements before it.
func (r *rows) queryAfter(ctx context.Context, batch *pgx.Batch, query string, args []any) (err error) {
	before := batch.Len()
	batch.Queue(query, args...)
	r.batch = r.conn.pgx.SendBatch(ctx, batch)
	for _, q := range batch.QueuedQueries[:before] {
		if err := answer(q, r.batch); err != nil {
			_ = r.batch.Close() // has the same error
			return err
		}
	}
	if r.rows, err = r.batch.Query(); err != nil {
		_ = r.batch.Close() // has the same error
	}
	return err
}

// answer reads the result of a statement of a batch.
func answer(q *pgx.QueuedQuery, results pgx.BatchResults) error {
	if q.Fn != nil {
		return q.Fn(results)
	}
	_, err := results.Exec()
	return err
}

// Next implements sqldb.Result.
func (r *rows) Next() bool {
	if r.isAll {
		if len(r.buffered) == 0 {
			return false
		}
		r.current, r.buffered = r.buffered[0], r.buffered[1:]
		return true
	}
	if !r.rows.Next() {
		r.finish()
		return false
	}
	r.current = r.rows.RawValues()
	return true
}

// buffer reads the rest of the rows into memory, and the current one.
func (r *rows) buffer() error {
	if r.isAll {
		return nil
	}
	r.current = cloneValues(r.current)
	for r.rows.Next() {
		r.buffered = append(r.buffered, cloneValues(r.rows.RawValues()))
	}
	r.finish()
	return r.err
}

func cloneValues(values [][]byte) [][]byte {
	clone := make([][]byte, len(values))
	for i, v := range values {
		clone[i] = slices.Clone(v)
	}
	return clone
}

// finish frees the connection.
func (r *rows) finish() {
	if r.isAll {
		return
	}
	r.isAll = true
	r.rows.Close()
	r.err = r.rows.Err()
	if r.batch != nil {
		r.err = errors.Join(r.err, r.batch.Close())
	}
	if r.conn.open == r {
		r.conn.open = nil
	}
}

// Err implements sqldb.Result.
func (r *rows) Err() error { return r.err }

// Close implements sqldb.Result.
func (r *rows) Close() error {
	r.finish()
	r.buffered = nil
	return r.err
}

// Scan implements sqldb.Result.
func (r *rows) Scan(dest ...any) error {
	if len(dest) != len(r.fields) {
		return fmt.Errorf("the query has %d columns, want %d", len(r.fields), len(dest))
	}
	for i, d := range dest {
		if err := r.scan(i, d); err != nil {
			return fmt.Errorf("scan column %s: %w", r.fields[i].Name, err)
		}
	}
	return nil
}

// scan scans a column. Flags are the numbers 0 and 1, as in SQLite.
func (r *rows) scan(i int, dest any) error {
	f := r.fields[i]
	if flag, ok := dest.(*bool); ok && f.DataTypeOID != pgtype.BoolOID {
		var n int64
		err := r.types.Scan(f.DataTypeOID, f.Format, r.current[i], &n)
		if err == nil && n != 0 && n != 1 {
			err = fmt.Errorf("%d is not a flag", n)
		}
		*flag = n != 0
		return err
	}
	return r.types.Scan(f.DataTypeOID, f.Format, r.current[i], dest)
}

// Rows implements sqldb.Driver.
func (c *conn) Rows(insert, conflict string, columns int, args []any) (statement string, first, rest []any) {
	i := c.inserting(insert, conflict)
	if i == nil {
		return sqldb.TupleRows(insert, conflict, columns, args)
	}
	arrays := make([]any, columns)
	for n, kind := range i.kinds {
		arrays[n] = column(kind, n, columns, args)
	}
	return i.text, arrays, nil
}

// inserting returns the INSERT of rows from arrays, which it remembers.
func (c *conn) inserting(insert, conflict string) *inserting {
	key := insert + conflict
	if known, ok := c.inserts[key]; ok {
		return known
	}
	if c.inserts == nil {
		c.inserts = make(map[string]*inserting)
	}
	c.inserts[key] = c.types.inserting(insert, conflict)
	return c.inserts[key]
}

// List implements sqldb.Driver. For a list with one key, the server keeps the plan; for others, it
// plans each time, because that depends on their length.
func (c *conn) List(query string, columns int, keys []any) (list string, args, rest []any) {
	if columns == 1 && len(keys) == 1 {
		kind, _ := c.listOf(query, 0, columns, keys)
		return strings.TrimSuffix(query, "IN ") + "= ?::" + kind, keys, nil
	}
	casts := make([]string, columns)
	for n := range columns {
		kind, values := c.listOf(query, n, columns, keys)
		casts[n], args = "?::"+kind+"[]", append(args, values)
	}
	if columns == 1 {
		return strings.TrimSuffix(query, "IN ") + "= ANY (" + casts[0] + ")", args, nil
	}
	return query + "(SELECT * FROM unnest(" + strings.Join(casts, ", ") + "))", args, nil
}

// listOf returns the values of a column of a list, and their type. A column that ignores the case
// of letters only does so if it is compared with values of its own type.
func (c *conn) listOf(query string, n, columns int, keys []any) (kind string, values any) {
	switch argument(keys[n]).(type) {
	case int64:
		return "bigint", array[int64](n, columns, keys)
	case []byte:
		return "bytea", array[[]byte](n, columns, keys)
	}
	kind = "text"
	if strings.Contains(query, "/*+nocase*/") {
		kind = "citext"
	}
	return kind, array[string](n, columns, keys)
}
