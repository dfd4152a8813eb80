package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// defaultTimeout is the default of Options.Timeout.
	defaultTimeout = 30 * time.Second
	// settings limit how long a transaction waits for its lock, and how long the server keeps the
	// lock of a process that does not answer. A COMMIT must be on disk, whatever the default is.
	settings = `
SELECT set_config('lock_timeout', '1s', true), set_config('idle_in_transaction_session_timeout', '30s', true),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END`
)

// transactions begins and ends the transactions of the writer. It implements engine.Transactions.
type transactions struct {
	conn  *conn
	sql   *sqldb.Conn // on conn
	clock *clock
	hooks sqldb.Hooks
	hints *hints
	// timeout limits a transaction, in case the server does not answer and the connection does not
	// end.
	timeout time.Duration

	// Of the present transaction: the orgs that it has locked, or whether these are all, and what
	// ends it when it takes too long.
	locked []int64
	all    bool
	ctx    context.Context
	cancel context.CancelFunc
}

// Begin implements engine.Transactions. First it locks the rows of the orgs, so that only one
// process at a time writes to each of them, and then it reads the database's clock. All that takes
// one round trip.
func (t *transactions) Begin(locks sqldb.Locks) (*sqldb.Conn, error) {
	t.ctx, t.cancel = context.WithTimeout(context.Background(), t.timeout)
	t.sql.SetContext(t.ctx)
	r, err := t.begin(t.ctx, locks)
	if sqldb.ClassOf(err) == sqldb.Unreachable && t.conn.wasLost() { // perhaps long ago
		r, err = t.begin(t.ctx, locks)
	}
	if err == nil && !r.hasAll(locks) { // an org is to be created, or was renamed
		t.rollback() // it must not wait while it has locks
		r, err = t.begin(t.ctx, sqldb.Locks{All: true})
	}
	if err != nil {
		return nil, t.Rollback(t.sql, failing(err))
	}

	t.locked, t.all = r.ids, r.all
	t.clock.set(r.now)
	t.hooks.Begun(r.stamp)
	return t.sql, nil
}

// lockedRows are the orgs that a transaction has locked, with the latest of their stamps, and the
// time at which they were locked.
type lockedRows struct {
	ids        []int64
	names      []string
	all        bool
	stamp, now int64
}

// hasAll reports whether all orgs were found.
func (r lockedRows) hasAll(locks sqldb.Locks) bool {
	missing := func(name string) bool { return !slices.Contains(r.names, name) }
	return r.all || !slices.ContainsFunc(locks.Names, missing)
}

// Statements that take locks, in the order of row ids: so two transactions never wait for each
// other. What they aggregate is the newest version of each row.
const (
	lockSome = `
SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(name::text), '{}'), coalesce(max(stamp), 0)
FROM (SELECT id, name, stamp FROM orgs WHERE name = ANY ($1) OR id = ANY ($2) ORDER BY id FOR NO KEY UPDATE) locked`
	lockAll = `
SELECT coalesce(max(stamp), 0) FROM (SELECT stamp FROM orgs ORDER BY id FOR NO KEY UPDATE) locked`
	// readStamp reads the latest stamp of those who had locked all orgs.
	readStamp = "SELECT stamp, " + clockMillis + " FROM ledger"
)

// begin begins a transaction, and locks orgs. Who locks all of them, also locks the row of the table
// ledger: there may be no org, or new ones.
func (t *transactions) begin(ctx context.Context, locks sqldb.Locks) (r lockedRows, err error) {
	if err := t.conn.Ready(ctx); err != nil {
		return r, failing(err)
	}
	r.all = locks.All
	var last int64
	batch := new(pgx.Batch)
	batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	batch.Queue(settings)
	switch {
	case r.all:
		batch.Queue("SELECT stamp FROM ledger WHERE id = 1 FOR NO KEY UPDATE")
		batch.Queue(lockAll).QueryRow(func(row pgx.Row) error { return row.Scan(&r.stamp) })
	case len(locks.Names)+len(locks.Owners) > 0:
		batch.Queue(lockSome, locks.Names, locks.Owners).
			QueryRow(func(row pgx.Row) error { return row.Scan(&r.ids, &r.names, &r.stamp) })
	}

	batch.Queue(readStamp).QueryRow(func(row pgx.Row) error { return row.Scan(&last, &r.now) })
	if err := t.conn.pgx.SendBatch(ctx, batch).Close(); err != nil {
		return r, failing(err)
	}
	r.stamp = max(r.stamp, last)
	return r, nil
}

// Commit implements engine.Transactions. It also takes one round trip.
func (t *transactions) Commit(*sqldb.Conn) error {
	stamp := t.hooks.Stamp()
	switch {
	case t.all:
		t.conn.Queue("UPDATE ledger SET writes = writes + 1, stamp = $1 WHERE id = 1", []any{stamp})
	case len(t.locked) > 0:
		t.conn.queued().Queue("UPDATE orgs SET writes = writes + 1, stamp = $1 WHERE id = ANY ($2)", stamp, t.locked)
	}
	t.conn.queued().Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" { // a transaction that has failed ends with ROLLBACK, and no error
			return errors.New("the transaction had failed")
		}
		return nil
	})
	if err := t.conn.Send(t.ctx); err != nil {
		return fmt.Errorf("commit: %w", uncertain(err))
	}
	t.end()
	t.hints.give()
	return nil
}

// uncertain returns the error of a transaction whose COMMIT was sent. If the connection was lost
// before the answer came, it may be on disk.
func uncertain(err error) error {
	// After FATAL, the server has ended the session, perhaps after the COMMIT.
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "ERROR" || pgconn.SafeToRetry(err) {
		return failing(err)
	}
	return &sqldb.Error{Class: sqldb.Uncertain, Err: err}
}

// Rollback implements engine.Transactions.
func (t *transactions) Rollback(_ *sqldb.Conn, err error) error {
	if t.ctx.Err() != nil && sqldb.ClassOf(err) == sqldb.Other {
		err = &sqldb.Error{Class: sqldb.Unreachable, Err: fmt.Errorf("the server does not answer: %w", err)}
	}
	t.rollback()
	t.end()
	return err
}

// end forgets the time limit of the transaction.
func (t *transactions) end() {
	t.cancel()
	t.sql.SetContext(context.Background())
}

// rollback ends the transaction. If the connection was lost, the server does.
func (t *transactions) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	t.conn.queue = nil
	if err := t.conn.Run(ctx, "ROLLBACK"); err != nil {
		hangUp(t.conn.pgx)
	}
}

// IsOfDatabase implements engine.Transactions.
func (t *transactions) IsOfDatabase(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok || sqldb.ClassOf(err) == sqldb.Unreachable
}
