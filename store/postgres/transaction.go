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
	// lock of a process that does not answer. Whatever the defaults are, a COMMIT must be on disk, and
	// warn if it is not on the standby.
	settings = `
SELECT set_config('lock_timeout', '100ms', true), set_config('idle_in_transaction_session_timeout', '30s', true),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END,
  CASE current_setting('client_min_messages') WHEN 'error' THEN set_config('client_min_messages', 'warning', true) END`
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

	// unconfirmed is the process of the server whose COMMIT took too long, because it waits for a
	// standby. It is 0 if the last COMMIT was confirmed.
	unconfirmed uint32

	begins int            // how often a transaction has begun, or failed to
	later  []*sqldb.Write // which the last transaction has left to the next
}

// Begin implements engine.Transactions. First it locks the rows of the orgs, so that only one
// process at a time writes to each of them, and then it reads the database's clock. All that takes
// one round trip. Writes whose orgs another process has locked are left to the next transaction.
func (t *transactions) Begin(writes []*sqldb.Write) (*sqldb.Conn, []*sqldb.Write, error) {
	t.ctx, t.cancel = context.WithTimeout(context.Background(), t.timeout)
	t.sql.SetContext(t.ctx)
	r, later, err := t.lock(writes)
	if err != nil {
		return nil, nil, t.Rollback(t.sql, failing(err))
	}

	t.locked, t.all, t.later = r.ids, r.all, later
	t.clock.set(r.now)
	t.hooks.Begun(r.stamp)
	return t.sql, later, nil
}

// patientTurn is the turn in which a transaction waits for its locks, although a part of its writes has waited
// in vain: writes about all orgs get them only then.
const patientTurn = 4

// lock begins a transaction with the locks of all writes, or with those that no other process holds. Only if it
// is patient, it waits for locks. later are the writes that lack a lock.
func (t *transactions) lock(writes []*sqldb.Write) (r lockedRows, later []*sqldb.Write, err error) {
	l := locksOf(writes)
	t.begins++
	if t.begins%patientTurn == 0 || isPatient(writes, t.later) {
		r, err := t.lockEach(l)
		isOne := len(l.names)+len(l.owners) < 2 && !l.all && !slices.ContainsFunc(writes, isIndependent)
		if sqldb.ClassOf(err) != sqldb.Locked || isOne {
			return r, nil, err
		}
		t.rollback()
	}
	r, err = t.begin(t.ctx, l, lockFree)
	if err != nil {
		return r, nil, err
	}
	if later = r.uncovered(writes); len(later) == len(writes) {
		err = &sqldb.Error{Class: sqldb.Locked, Err: errors.New("other processes hold the locks of all these orgs")}
	}
	return r, later, err
}

// lockEach begins a transaction with all locks.
func (t *transactions) lockEach(l locks) (lockedRows, error) {
	r, err := t.begin(t.ctx, l, lockSome)
	if err == nil && !r.hasAll(l) { // an org is to be created, or was renamed
		t.rollback() // it must not wait while it has locks
		r, err = t.begin(t.ctx, locks{all: true}, lockSome)
	}
	return r, err
}

// begin begins a transaction, and locks orgs. Who locks all of them, also locks the row of the table
// ledger: there may be no org, or new ones. How some are locked is lockSome or lockFree.
func (t *transactions) begin(ctx context.Context, l locks, how string) (r lockedRows, err error) {
	r, err = t.tryBegin(ctx, l, how)
	if sqldb.ClassOf(err) == sqldb.Unreachable && t.conn.wasLost() { // perhaps long ago
		r, err = t.tryBegin(ctx, l, how)
	}
	return r, err
}

func (t *transactions) tryBegin(ctx context.Context, l locks, how string) (r lockedRows, err error) {
	if err := t.conn.Ready(ctx); err != nil {
		return r, failing(err)
	}
	if err := t.checkStandby(ctx); err != nil {
		return r, err
	}

	r.all = l.all && how == lockSome
	var last int64
	batch := new(pgx.Batch)
	batch.Queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	batch.Queue(settings)
	switch {
	case r.all:
		batch.Queue("SELECT stamp FROM ledger WHERE id = 1 FOR NO KEY UPDATE")
		batch.Queue(lockAll).QueryRow(func(row pgx.Row) error { return row.Scan(&r.stamp) })
	case len(l.names)+len(l.owners) > 0:
		batch.Queue(how, l.names, l.owners).
			QueryRow(func(row pgx.Row) error { return row.Scan(&r.ids, &r.names, &r.stamp) })
	}

	batch.Queue(readStamp).QueryRow(func(row pgx.Row) error { return row.Scan(&last, &r.now) })
	t.conn.traffic.trips.Add(1)
	if err := t.conn.pgx.SendBatch(ctx, batch).Close(); err != nil {
		return r, failing(err)
	}
	r.stamp = max(r.stamp, last)
	return r, nil
}

// checkStandby returns an error as long as the COMMIT that took too long waits for a standby. Another one
// would wait, too, and keep one more connection of the server.
func (t *transactions) checkStandby(ctx context.Context) error {
	if t.unconfirmed == 0 {
		return nil
	}
	var waits bool
	err := t.conn.pgx.QueryRow(ctx,
		"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep')", int64(t.unconfirmed)).
		Scan(&waits)
	if err != nil {
		return failing(err)
	}
	if waits {
		return &sqldb.Error{Class: sqldb.Unreachable, Err: errors.New("the synchronous standby does not confirm commits")}
	}
	t.unconfirmed = 0
	return nil
}

// Commit implements engine.Transactions. It also takes one round trip.
func (t *transactions) Commit(*sqldb.Conn) error {
	stamp := t.hooks.Stamp()
	switch {
	case t.all:
		t.conn.queued().Queue("UPDATE ledger SET writes = writes + 1, stamp = $1 WHERE id = 1", stamp)
	case len(t.locked) > 0:
		t.conn.queued().Queue("UPDATE orgs SET writes = writes + 1, stamp = $1 WHERE id = ANY ($2)", stamp, t.locked)
	}
	t.conn.queued().Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" { // a transaction that has failed ends with ROLLBACK, and no error
			return errors.New("the transaction had failed")
		}
		return nil
	})

	if err := t.conn.guard.commit(func() error { return t.conn.Send(t.ctx) }); err != nil {
		if t.ctx.Err() != nil {
			t.unconfirmed = t.conn.pgx.PgConn().PID()
		}
		return fmt.Errorf("commit: %w", err)
	}
	t.end()
	t.hints.give()
	return nil
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
