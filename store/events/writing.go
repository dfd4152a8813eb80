package events

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A writing is what the writer keeps in memory until the events are on disk. Only its goroutine
// uses it.
type writing struct {
	rows rows
	// heads holds, by org, the end of its events at the start of the transaction.
	heads map[int64]logHead
	// asked holds, by org, what a write has asked for heads.
	asked map[int64]func() (logHead, error)
	// left is what the write that runs leaves to the transaction, and total what all writes have.
	left, total left
	// hooks caches the webhooks of repos during a write.
	hooks map[int64][]Hook
}

// rows buffers the rows that a write inserts.
type rows struct{ events, outbox, violations, audits *sqldb.Rows }

// A left is what a write leaves to its transaction.
type left struct {
	appended map[int64]int64 // the numbers of events, by org
	// queued lists the webhooks with new deliveries; changed lists those that were changed
	// or deleted.
	queued, changed []string
	// built lists the orgs whose log was built up to its end; began lists new logs of orgs that
	// had another one.
	built []int64
	began []begun
}

// A begun is a new log of an org.
type begun struct {
	orgID int64
	head  logHead // its seq is not set
}

func newWriting() writing {
	return writing{
		rows: rows{
			events: sqldb.NewRows(`
INSERT INTO events (id, org_id, seq, event_id, type, repo_id, at, body, salt, leaf) VALUES `, "", 10),
			outbox: sqldb.NewRows(`
INSERT INTO outbox (webhook_id, delivery_id, event, status, due_at, created_at) VALUES `, "", 6),
			violations: sqldb.NewRows("INSERT INTO violation_events (org_id, seq, repo_id, event) VALUES ", "", 4),
			audits:     sqldb.NewRows("INSERT INTO audits (org_id, seq, event, kind, action, repo, actor) VALUES ", "", 7),
		},
		heads: make(map[int64]logHead),
		asked: make(map[int64]func() (logHead, error)),
		left:  left{appended: make(map[int64]int64)},
		total: left{appended: make(map[int64]int64)},
	}
}

// all returns the buffers in insertion order: rows only refer to events.
func (r *rows) all() [4]*sqldb.Rows {
	return [...]*sqldb.Rows{r.events, r.outbox, r.violations, r.audits}
}

// flush writes the rows.
func (w *writing) flush(t *txn.Tx) error {
	for _, rows := range w.rows.all() {
		if err := rows.Flush(t.Conn); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}

// keep adds what a successful write has left.
func (w *writing) keep() {
	for orgID, n := range w.left.appended {
		w.total.appended[orgID] += n
	}
	w.total.queued = append(w.total.queued, w.left.queued...)
	w.total.changed = append(w.total.changed, w.left.changed...)

	for _, orgID := range w.left.built {
		head := w.heads[orgID]
		head.built = isBuilt
		w.heads[orgID] = head
	}
	for _, n := range w.left.began {
		n.head.seq = w.heads[n.orgID].seq
		w.heads[n.orgID] = n.head
	}
	w.begin()
}

// discard drops what a failed write has left.
func (w *writing) discard() {
	for _, rows := range w.rows.all() {
		rows.Reset()
	}
	w.begin()
}

// begin prepares for the next write.
func (w *writing) begin() {
	w.left.reset()
	clear(w.hooks)
	clear(w.asked)
}

// reset prepares for the next transaction.
func (w *writing) reset() {
	w.discard()
	clear(w.heads)
	w.total.reset()
}

func (l *left) reset() {
	clear(l.appended)
	l.queued, l.changed = l.queued[:0], l.changed[:0]
	l.built, l.began = l.built[:0], l.began[:0]
}
