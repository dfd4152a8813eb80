package sqldb

import "context"

// A Driver is a connection of an engine, which runs the statements of a Conn. They are as written, in the
// SQL that all engines share. While the rows of one query are read, others may run.
type Driver interface {
	// Ready connects, if the connection was lost or never made.
	Ready(ctx context.Context) error
	// Exec sends the queued statements and this one.
	Exec(ctx context.Context, statement string, args []any) (changed int64, err error)
	// Query sends the queued statements and a query. The context may be ignored if the database is in the same
	// process, where to watch it costs some microseconds. The rows must be closed.
	Query(ctx context.Context, query string, args []any) (Result, error)
	// QueryLong is like Query, but always ends with the context.
	QueryLong(ctx context.Context, query string, args []any) (Result, error)
	// Ask queues a query of few rows, and returns the function that returns its answer. That runs the query
	// if a statement has changed something since, or if it is called again.
	Ask(query string, args []any) Answer
	// Queue adds a statement that returns no rows to the next ones, or runs it. It keeps the arguments, but
	// not the slice of them.
	Queue(statement string, args []any) error
	// Rows returns the statement for rows of some columns each, whose values are args, and those of the rows
	// that are left for the next statement. The text insert ends with VALUES, and conflict follows the values.
	Rows(insert, conflict string, columns int, args []any) (statement string, first, rest []any)
	// List returns the query for a list of keys of some columns each, and the keys that are left for
	// the next query. The query ends with IN.
	List(query string, columns int, keys []any) (list string, first, rest []any)
	// Send sends the queued statements.
	Send(ctx context.Context) error
	// Run sends the queued statements, and then a script.
	Run(ctx context.Context, script string) error
	Close() error
}

// An Answer returns the rows of a query that was asked. They must be closed.
type Answer func(ctx context.Context) (Result, error)

// A Result has the rows of a query, as in database/sql.
type Result interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}
