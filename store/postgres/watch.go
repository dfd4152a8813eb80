package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// Watch implements sqldb.Engine. It waits for notifications, and also looks each second whether
// there were commits.
func (db *DB) Watch(ctx context.Context, checked func(changed bool, err error)) {
	w := watcher{db: db}
	defer func() { hangUp(w.conn) }()
	for ctx.Err() == nil {
		changed, err := w.look(ctx)
		if ctx.Err() != nil {
			return
		}
		db.Readers.Judge(err)
		checked(changed, err)
		if err != nil {
			pause(ctx, pollInterval)
			continue
		}
		w.wait(ctx)
	}
}

// answerTimeout is how long the server may take to answer the watcher, before it looks for another
// primary.
const answerTimeout = 5 * time.Second

// A watcher looks for commits.
type watcher struct {
	db   *DB
	conn *pgx.Conn
	host int   // of conn
	seen int64 // the number of transactions that have written
	// sized is when the size of the database was read.
	sized time.Time
}

// sizeInterval is the time between two looks at the size of the database.
const sizeInterval = time.Minute

// look reports whether there were commits since it looked last, and reads the clock.
func (w *watcher) look(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(w.db.timeout, answerTimeout))
	defer cancel()
	if w.conn == nil || w.conn.IsClosed() {
		if err := w.connect(ctx); err != nil {
			return false, failing(err)
		}
	}

	var writes, now int64
	err = w.conn.QueryRow(ctx, `
SELECT l.writes + (SELECT coalesce(sum(writes), 0)::bigint FROM orgs), `+clockMillis+`
FROM ledger l`).Scan(&writes, &now)
	if err != nil {
		return false, failing(err)
	}
	w.db.clock.set(now)
	changed = writes != w.seen
	w.seen = writes
	w.measure(ctx)
	return changed, nil
}

// measure reads the size of the database, once a minute. If it fails, the size stays as it was: it is
// only for metrics, and a lost connection is noticed by the next look.
func (w *watcher) measure(ctx context.Context) {
	if !w.sized.IsZero() && time.Since(w.sized) < sizeInterval {
		return
	}
	w.sized = time.Now()
	var size int64
	if err := w.conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size); err == nil {
		w.db.size.Store(size)
	}
}

// connect connects. If another host is the primary now, no connection stays at the old one.
func (w *watcher) connect(ctx context.Context) (err error) {
	before := w.host
	if w.conn, w.host, err = w.db.hosts.connect(ctx, waiting); err != nil {
		w.host = before
		return err
	}
	if w.host != before {
		w.db.hosts.leave(w.host)
	}
	_, err = w.conn.Exec(ctx, "LISTEN "+channel)
	return err
}

// waiting configures a connection that waits: when the wait ends, only the read does. There is no
// query that the server would have to cancel.
func waiting(config *pgx.ConnConfig) {
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
}

// wait waits for a notification, but not longer than until the next poll.
func (w *watcher) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	_, err := w.conn.WaitForNotification(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		pause(ctx, pollInterval)
	}
}
