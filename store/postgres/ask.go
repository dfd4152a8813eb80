package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A question is a query that was asked, in the queue or answered.
type question struct {
	conn    *conn
	query   string
	args    []any
	changes int              // of the connection when it was asked
	queued  *pgx.QueuedQuery // in the queue, until that is sent
	rows    *rows            // the answer, until somebody has taken it
}

// Ask implements sqldb.Driver.
func (c *conn) Ask(query string, args []any) sqldb.Answer {
	q := &question{conn: c, query: query, args: args, changes: c.changes}
	q.queued = c.queued().Queue(c.text(query), arguments(args)...)
	q.queued.Query(q.receive)
	return q.answer
}

// receive reads all rows of the answer.
func (q *question) receive(result pgx.Rows) error {
	if err := result.Err(); err != nil { // then there are no fields
		return err
	}
	fields := slices.Clone(result.FieldDescriptions()) // the next query overwrites them
	q.rows = &rows{conn: q.conn, types: q.conn.pgx.TypeMap(), rows: result, fields: fields}
	return q.rows.buffer()
}

// answer implements sqldb.Answer. If nothing was sent since, and nothing was queued after the question, it is
// an ordinary query.
func (q *question) answer(ctx context.Context) (sqldb.Result, error) {
	q.takeBack()
	if q.queued != nil && q.rows == nil && q.changes == q.conn.changes {
		if err := q.conn.Send(ctx); err != nil {
			return nil, err
		}
	}
	rows := q.rows
	q.queued, q.rows = nil, nil
	if rows == nil || q.changes != q.conn.changes { // or a statement before it has failed
		return q.conn.Query(ctx, q.query, q.args)
	}
	return rows, nil
}

// takeBack takes the question out of the queue if it is the last in it.
func (q *question) takeBack() {
	if q.conn.queue == nil || q.queued == nil {
		return
	}
	queue := q.conn.queue.QueuedQueries
	last := len(queue) - 1
	if last < 0 || queue[last] != q.queued {
		return
	}
	q.queued = nil
	if q.conn.queue.QueuedQueries = queue[:last]; last == 0 {
		q.conn.queue = nil
	}
}
