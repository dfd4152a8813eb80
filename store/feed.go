package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// Watch notices, until the context ends, what other processes write to the
// database, and wakes those who wait for events.
func (s *Store) Watch(ctx context.Context) {
	s.db.Watch(ctx, s.notifier.notifyAll, func(err error) {
		s.log.ErrorContext(ctx, "watching for writes of other processes failed", "error", err)
	})
}

// An Event is one entry of an org's log.
type Event struct {
	Seq  int64 // from 0 in each org, without gaps
	ID   string
	Type ledger.EventType
	Repo string
	Body []byte // as it was rendered
}

// A Tail reads an org's events as they come.
type Tail struct {
	store *Store
	orgID int64
}

// Tail returns a reader of the org's events.
func (s *Store) Tail(ctx context.Context, org string) (*Tail, error) {
	orgID, err := readLoose(ctx, s, func(rd reader) (int64, error) { return rd.orgID(org) })
	return &Tail{store: s, orgID: orgID}, err
}

// Changed returns a channel that is closed once there may be events which were
// not there when Changed was called.
func (t *Tail) Changed() <-chan struct{} { return t.store.notifier.wait(t.orgID) }

// Next returns the sequence number of the org's next event.
func (t *Tail) Next(ctx context.Context) (int64, error) {
	return readLoose(ctx, t.store, func(rd reader) (seq int64, err error) {
		return seq, rd.Row("SELECT next_seq FROM orgs WHERE id = ?", t.orgID).Scan(&seq)
	})
}

// Seq returns the sequence number of the event of that id; false if the org
// has none.
func (t *Tail) Seq(ctx context.Context, id string) (seq int64, ok bool, err error) {
	at, err := readLoose(ctx, t.store, func(rd reader) (eventAt, error) { return rd.findEvent(t.orgID, id) })
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return at.seq, err == nil, err
}

// Read returns the org's events from a sequence number on, at most limit.
func (t *Tail) Read(ctx context.Context, from int64, limit int) ([]Event, error) {
	events, err := readLoose(ctx, t.store, func(rd reader) ([]Event, error) {
		return all(rd, scanTail, `
SELECT e.seq, e.event_id, e.type, r.name, e.body
FROM events e JOIN repos r ON r.id = e.repo_id WHERE e.org_id = ? AND e.seq >= ? ORDER BY e.seq LIMIT ?`, t.orgID, from,
			limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}

func scanTail(row scanner) (Event, error) {
	var e Event
	err := row.Scan(&e.Seq, &e.ID, &e.Type, &e.Repo, &e.Body)
	return e, err
}
