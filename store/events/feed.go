package events

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Watch watches the database for writes of other processes until ctx is done, and
// wakes the readers that wait for events.
func (j *Journal) Watch(ctx context.Context) {
	failures := txn.Series{Log: j.db.Log, Task: "watching for writes of other processes"}
	j.db.Watch(ctx, func(changed bool, err error) {
		failures.Observe(ctx, txn.StorageError(err))
		if changed {
			j.notifier.notifyAll()
		}
	})
}

// An Event is an event of an org.
type Event struct {
	Seq  int64 // starts at 0 in each org, and has no gaps
	ID   string
	Type ledger.EventType
	Repo string // empty for an event of the org
	Body []byte // as it was recorded; empty if it was pruned
}

// A Tail reads an org's events as they are recorded.
type Tail struct {
	journal *Journal
	org     string
	orgID   int64
}

// Tail returns a reader of the org's events.
func (j *Journal) Tail(ctx context.Context, org string) (*Tail, error) {
	orgID, err := txn.ReadLoose(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (int64, error) { return rd.OrgID(org) })
	return &Tail{journal: j, org: org, orgID: orgID}, err
}

// Org returns the row id of the org, which it keeps if it is renamed.
func (t *Tail) Org() int64 { return t.orgID }

// Changed returns a channel that is closed when the org may have events that are newer
// than the call.
func (t *Tail) Changed() <-chan struct{} { return t.journal.notifier.wait(t.orgID) }

// Next returns the sequence number that the org's next event will have.
func (t *Tail) Next(ctx context.Context) (int64, error) {
	return txn.ReadLoose(ctx, t.journal.db, txn.ByOrg(t.org), func(rd txn.Reader) (seq int64, err error) {
		return seq, rd.Row("SELECT next_seq FROM orgs WHERE id = ?", t.orgID).Scan(&seq)
	})
}

// Seq returns the sequence number of the event with the given id. It returns false if
// the org has no such event.
func (t *Tail) Seq(ctx context.Context, id string) (seq int64, ok bool, err error) {
	event, err := txn.ReadLoose(ctx, t.journal.db, txn.ByOrg(t.org), func(rd txn.Reader) (Ref, error) {
		return Find(rd, t.orgID, id)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return event.Seq, err == nil, err
}

// Read returns at most limit of the org's events, starting at a sequence number.
func (t *Tail) Read(ctx context.Context, from int64, limit int) ([]Event, error) {
	events, err := txn.ReadLoose(ctx, t.journal.db, txn.ByOrg(t.org), func(rd txn.Reader) ([]Event, error) {
		return txn.All(rd, scanTail, `
SELECT e.seq, e.event_id, e.type, coalesce(r.name, ''), e.body
FROM events e LEFT JOIN repos r ON r.id = e.repo_id WHERE e.org_id = ? AND e.seq >= ? ORDER BY e.seq LIMIT ?`,
			t.orgID, from, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}

func scanTail(row txn.Scanner) (Event, error) {
	var e Event
	err := row.Scan(&e.Seq, &e.ID, &e.Type, &e.Repo, &e.Body)
	return e, err
}
