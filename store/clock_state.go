package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// stampSlack is by how much stamps may have passed aheadUntil, which is saved once a
// minute. It must be less than MaxLead.
const stampSlack = MaxLead / 2

// resumeClock makes the clock continue from the last time in the database.
func (s *Store) resumeClock(ctx context.Context) error {
	var stamp ledger.Time
	row, err := read(ctx, s, forWrite(""), func(rd reader) (row clockRow, err error) {
		if stamp, err = rd.lastStamp(); err != nil {
			return row, err
		}
		return rd.clockRow()
	})
	if err != nil {
		return err
	}

	last := stamp
	if row.putRightAt != 0 && stamp <= row.aheadUntil.Add(stampSlack) {
		last = row.putRightAt
	}
	behind := s.clock.read().Sub(row.behindSince)
	s.clock.resume(last, stamp, row.behindSince != 0 && behind >= holdTime)
	s.saved.clockRow = row
	if err := s.saveClock(ctx); err != nil { // Evaluate saves it later: the disk may be full
		s.log.ErrorContext(ctx, "saving the state of the clock failed", "error", err)
	}
	return nil
}

func (rd reader) clockRow() (row clockRow, err error) {
	err = rd.Row("SELECT behind_since, put_right_at, ahead_until, pending FROM clock WHERE id = 1").
		Scan(&row.behindSince, &row.putRightAt, &row.aheadUntil, &row.pending)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return row, err
}

// LastStamp returns the latest time in the ids of the database that c reads.
func LastStamp(c *sqldb.Conn) (ledger.Time, error) { return reader{Conn: c}.lastStamp() }

// lastStamp returns the latest time in the ids of the database.
func (rd reader) lastStamp() (last ledger.Time, err error) {
	err = rd.Row(`
SELECT coalesce(max(at), 0) FROM (
  SELECT (SELECT max(at) FROM events WHERE org_id = o.id) AS at FROM orgs o) latest`).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("read the last event: %w", err)
	}

	for _, table := range []struct{ prefix, query string }{
		{deliveryPrefix, `
SELECT coalesce(max(id), '') FROM (
  SELECT (SELECT max(delivery_id) FROM outbox WHERE webhook_id = w.id) AS id FROM webhooks w) latest`},
		{tokenPrefix, "SELECT coalesce(max(token_id), '') FROM tokens"},
		{identityPrefix, "SELECT coalesce(max(identity_id), '') FROM identities"},
		{webhookPrefix, "SELECT coalesce(max(webhook_id), '') FROM webhooks"},
	} {
		var id string
		if err := rd.Row(table.query).Scan(&id); err != nil {
			return 0, fmt.Errorf("read the last id: %w", err)
		}
		if at, ok := idTime(table.prefix, id); ok {
			last = max(last, at)
		}
	}
	return last, nil
}

// saveClock saves what has changed of the clock. Usually nothing has.
func (s *Store) saveClock(ctx context.Context) error {
	row := s.saved.clockRow
	now := s.Now()
	if err := s.followStamps(ctx, now); err != nil {
		return err
	}

	dropped := s.clock.takeDropped()
	switch far := s.clock.isFarBehind(); {
	case dropped:
		row = clockRow{putRightAt: now, aheadUntil: s.clock.lastStamp(), pending: true}
	case !far:
		row.behindSince = 0
	case row.behindSince == 0 || row.behindSince > s.clock.systemTime():
		row.behindSince = s.clock.systemTime()
	}
	row.follow(now, s.clock.lastStamp())
	if row == s.saved.clockRow {
		return nil
	}

	err := s.write(ctx, "", func(t *tx) error {
		_, err := t.Exec(`
INSERT INTO clock (id, behind_since, put_right_at, ahead_until, pending) VALUES (1, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET behind_since = excluded.behind_since, put_right_at = excluded.put_right_at,
  ahead_until = excluded.ahead_until, pending = excluded.pending`,
			row.behindSince, row.putRightAt, row.aheadUntil, row.pending)
		return err
	})
	if err != nil {
		if dropped {
			s.clock.untakeDropped()
		}
		return fmt.Errorf("save the state of the clock: %w", err)
	}
	s.saved.clockRow = row
	return nil
}

// follow updates the row of a clock that was put back: after a restart, the clock continues
// from about now. Otherwise a clock that is ahead again would not be noticed.
func (r *clockRow) follow(now, stamp ledger.Time) {
	switch {
	case r.putRightAt == 0:
	case stamp > now:
		if stamp > r.aheadUntil.Add(stampSlack/2) {
			r.aheadUntil = stamp
		}
		if now > r.putRightAt.Add(stampSlack/2) && !r.pending {
			r.putRightAt = now
		}
	case !r.pending: // the clock has reached the stamps
		r.putRightAt, r.aheadUntil = 0, 0
	}
}

// followStamps makes new stamps follow those of other processes while stamps are ahead of
// the clock. Otherwise the clock does.
func (s *Store) followStamps(ctx context.Context, now ledger.Time) error {
	if s.clock.lastStamp() <= now {
		return nil
	}
	last, err := read(ctx, s, forWrite(""), func(rd reader) (ledger.Time, error) { return rd.lastStamp() })
	if err != nil {
		return err
	}
	s.clock.raiseStamp(last)
	return nil
}
