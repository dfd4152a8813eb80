package upkeep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ResumeClock makes the clock continue from the newest record in the database.
func (u *Upkeep) ResumeClock(ctx context.Context) error {
	k, err := txn.Read(ctx, u.db, txn.ForWrite(""), ReadClock)
	if err == nil {
		u.db.Clock.Resume(k.Newest, k.Accepted)
	}
	return err
}

// A StoredClock is what a database says of the clock: the newest stamp, and what was accepted.
type StoredClock struct {
	Newest ledger.Time
	txn.Accepted
}

// ReadClock reads what a database says of the clock.
func ReadClock(rd txn.Reader) (k StoredClock, err error) {
	if k.Newest, err = lastStamp(rd); err != nil {
		return k, err
	}
	err = rd.Row("SELECT accepted_at, stamp FROM clock WHERE id = 1").Scan(&k.At, &k.Stamp)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return k, err
}

// watchClock takes note of the stamps of other processes, and of a clock that was accepted, while the
// clock has jumped or stamps are ahead of it.
func (u *Upkeep) watchClock(ctx context.Context) error {
	if !u.db.Clock.IsWatched() {
		return nil
	}
	k, err := txn.Read(ctx, u.db, txn.ForWrite(""), ReadClock)
	if err != nil {
		return err
	}
	u.db.Clock.Adopt(k.Accepted)
	u.db.Clock.Follow(k.Newest)

	if a, ok := u.db.Clock.DueForSave(); ok {
		return u.db.Change(ctx, "", func(t *txn.Tx) error { return saveClock(t, a) })
	}
	return nil
}

// saveClock saves an accepted clock.
func saveClock(t *txn.Tx, a txn.Accepted) error {
	_, err := t.Exec(`
INSERT INTO clock (id, accepted_at, stamp) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET accepted_at = excluded.accepted_at, stamp = excluded.stamp`, a.At, a.Stamp)
	if err != nil {
		return fmt.Errorf("save the accepted clock: %w", err)
	}
	return nil
}

// AcceptClock accepts the system clock: the ledger's clock of all processes follows it, even back, and
// all commits are settled again. It returns the system clock, and the newest time that
// was recorded.
func (u *Upkeep) AcceptClock(ctx context.Context) (accepted, newest ledger.Time, err error) {
	err = u.db.Change(ctx, "", func(t *txn.Tx) error {
		if newest, err = lastStamp(t.Reader); err != nil {
			return err
		}
		accepted = u.db.Clock.SystemTime()
		if err := saveClock(t, txn.Accepted{At: accepted, Stamp: max(newest, t.Stamp)}); err != nil {
			return err
		}
		if err := u.jobs.LaterFor(t, "FROM repos WHERE deleted_at = 0", backlog.Settle, 0,
			ledger.Cause{Type: ledger.CauseExpiry}); err != nil {
			return err
		}
		return backlog.MakeDueBy(t, accepted)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("accept the clock: %w", err)
	}
	return accepted, newest, nil
}

// LastStamp returns the latest time in the ids of the database that c reads.
func LastStamp(c *sqldb.Conn) (ledger.Time, error) {
	return lastStamp(txn.Reader{Conn: c})
}

// lastStamp returns the latest time in the ids of the database.
func lastStamp(rd txn.Reader) (last ledger.Time, err error) {
	err = rd.Row(`
SELECT coalesce(max(at), 0) FROM (
  SELECT (SELECT max(at) FROM events WHERE org_id = o.id) AS at FROM orgs o) latest`).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("read the last event: %w", err)
	}

	for _, table := range []struct{ prefix, query string }{
		{txn.DeliveryPrefix, `
SELECT coalesce(max(id), '') FROM (
  SELECT (SELECT max(delivery_id) FROM outbox WHERE webhook_id = w.id) AS id FROM webhooks w) latest`},
		{txn.TokenPrefix, "SELECT coalesce(max(token_id), '') FROM tokens"},
		{txn.IdentityPrefix, "SELECT coalesce(max(identity_id), '') FROM identities"},
		{txn.WebhookPrefix, "SELECT coalesce(max(webhook_id), '') FROM webhooks"},
	} {
		var id string
		if err := rd.Row(table.query).Scan(&id); err != nil {
			return 0, fmt.Errorf("read the last id: %w", err)
		}
		if at, ok := txn.IDTime(table.prefix, id); ok {
			last = max(last, at)
		}
	}
	return last, nil
}
