package events

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Restored says which events a restored database has of an org.
type Restored struct {
	Org    string `json:"org"`
	Events int64  `json:"events"`
	// Last is the ID of the last event, and At its time; zero if there is none.
	Last string      `json:"last_event,omitzero"`
	At   ledger.Time `json:"at,omitzero"`
}

// NoteRestore records that the database was restored from a backup, so that the streams tell
// their clients. It returns what the database has of each org, by name.
func (j *Journal) NoteRestore(ctx context.Context) ([]Restored, error) {
	return txn.Write(ctx, j.db, sqldb.Write{}, func(t *txn.Tx) ([]Restored, error) {
		_, err := t.Exec("INSERT INTO restores (org_id, at, next_seq) SELECT id, ?, next_seq FROM orgs", t.Now)
		if err != nil {
			return nil, fmt.Errorf("record the restore: %w", err)
		}
		orgs, err := sqldb.All(t.Conn, func(row txn.Scanner) (r Restored, err error) {
			return r, row.Scan(&r.Org, &r.Events, &r.Last, &r.At)
		}, `
SELECT o.name, o.next_seq, coalesce(e.event_id, ''), coalesce(e.at, 0)
FROM orgs o LEFT JOIN events e ON e.org_id = o.id AND e.seq = o.next_seq - 1 ORDER BY o.name`)
		if err != nil {
			return nil, fmt.Errorf("read the last events: %w", err)
		}
		for _, o := range orgs {
			if err := j.AuditIn(t, o.Org, Audited{
				Action: ledger.AuditDatabaseRestored, Target: o.Org,
				After: []ledger.Field{{Name: "events", Value: o.Events}, {Name: "last_event", Value: Optional(o.Last)}},
			}); err != nil {
				return nil, err
			}
		}
		return orgs, nil
	})
}

// A Cut is the end of what a restored database has of the history that a client knows.
type Cut struct {
	Seq        int64       // the sequence number of the first event that the client may not know
	RestoredAt ledger.Time // when the database was restored last
}

// restoreSlack is how far the clock of the host that restored the database may have been behind
// the ids of events.
const restoreSlack = time.Hour

// Cut returns where the history of the org was cut back, for a client that knows an event which
// does not exist. It returns false if no restore can have removed an event with this id.
func (t *Tail) Cut(ctx context.Context, id string) (c Cut, ok bool, err error) {
	at, ok := txn.IDTime(txn.EventPrefix, id)
	if !ok {
		return c, false, nil
	}

	type found struct {
		Cut
		restores int64
		last     ledger.Time // the time of the last event that is left
	}

	f, err := txn.ReadLoose(ctx, t.journal.db, txn.ByOrg(t.org), func(rd txn.Reader) (f found, err error) {
		err = rd.Row(`
SELECT count(*), coalesce(min(next_seq), 0), coalesce(max(at), 0) FROM restores WHERE org_id = ? AND at >= ?`,
			t.orgID, at.Add(-restoreSlack)).Scan(&f.restores, &f.Seq, &f.RestoredAt)
		if err != nil || f.Seq == 0 {
			return f, err
		}
		return f, rd.Row("SELECT at FROM events WHERE org_id = ? AND seq = ?", t.orgID, f.Seq-1).Scan(&f.last)
	})
	if err != nil {
		return c, false, fmt.Errorf("look for a restore: %w", err)
	}
	return f.Cut, f.restores > 0 && at >= f.last, nil
}
