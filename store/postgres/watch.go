package postgres

import (
	"context"
	"errors"

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

// A watcher looks for commits.
type watcher struct {
	db   *DB
	conn *pgx.Conn
	seen int64 // the number of transactions that have written
}

// look reports whether there were commits since it looked last, and reads the clock.
func (w *watcher) look(ctx context.Context) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.db.timeout)
	defer cancel()
	if w.conn == nil || w.conn.IsClosed() {
		if w.conn, err = pgx.ConnectConfig(ctx, waiting(w.db.config)); err != nil {
			return false, failing(err)
		}
		if _, err = w.conn.Exec(ctx, "LISTEN "+channel); err != nil {
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
	return changed, nil
}

// waiting returns the configuration of a connection that waits: when the wait ends, only the read
// does. There is no query that the server would have to cancel.
func waiting(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	return config
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
