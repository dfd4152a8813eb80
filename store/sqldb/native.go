package sqldb

import "context"

// A Native is a connection of a driver that database/sql would slow down. Its statements are in the
// syntax of the engine. While the rows of one query are read, others may run.
type Native interface {
	// Ready connects, if the connection was lost or never made.
	Ready(ctx context.Context) error
	// Exec sends the queued statements and this one.
	Exec(ctx context.Context, statement string, args []any) (changed int64, err error)
	// Query sends the queued statements and a query. The rows must be closed.
	Query(ctx context.Context, query string, args []any) (Result, error)
	// Ahead queues a query that is going to be run with the same arguments, unless a statement changes
	// something before.
	Ahead(query string, args []any)
	// Queue adds a statement that returns no rows to the next ones. It keeps the arguments, but not
	// the slice of them.
	Queue(statement string, args []any)
	// QueueRows queues the rows of an INSERT, whose text ends with VALUES; args are the values of
	// one row after the other. It returns false if it does not know the statement.
	QueueRows(insert, conflict string, columns int, args []any) bool
	// List returns a query that ends with IN for a list of keys of some columns each, with its
	// arguments.
	List(query string, columns int, keys []any) (list string, args []any)
	// Send sends the queued statements.
	Send(ctx context.Context) error
	// Run sends the queued statements, and then a script.
	Run(ctx context.Context, script string) error
	Close() error
}

// A Result has the rows of a query, as in database/sql.
type Result interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}
