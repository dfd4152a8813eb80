package webhooks

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Deliveries are read with the outcome of the last attempt.
const (
	deliveryColumns = `o.delivery_id, w.webhook_id, coalesce(e.event_id, o.ping ->> 'id'), coalesce(e.type, 'ping'),
  o.status, o.attempts, o.created_at, o.due_at, o.leased, w.active, coalesce(a.status, 0), coalesce(a.error, '')`
	deliveryJoins = `
/*+ordered*/ JOIN webhooks w ON w.id = o.webhook_id LEFT JOIN events e ON e.id = o.event
LEFT JOIN attempts a ON a.webhook_id = o.webhook_id AND a.delivery_id = o.delivery_id AND a.number = o.attempts`
	selectDelivery = "SELECT " + deliveryColumns + " FROM outbox o" + deliveryJoins + " "
)

// scanDelivery returns a scan function for deliveries, which depend on the time.
func scanDelivery(now ledger.Time) func(txn.Scanner) (outbound.Delivery, error) {
	return func(row txn.Scanner) (outbound.Delivery, error) {
		var d outbound.Delivery
		var due ledger.Time
		var leased, active bool
		err := row.Scan(&d.ID, &d.Webhook, &d.Event, &d.Type, &d.Status, &d.Attempts,
			&d.CreatedAt, &due, &leased, &active, &d.LastStatus, &d.LastError)
		switch {
		case !active, leased && due > now: // no next attempt, or one is running
		case due == dueAtOnce:
			d.NextAttemptAt = now
		default:
			d.NextAttemptAt = due
		}
		return d, err
	}
}

// A DeliveryFilter selects the deliveries of a list. Empty fields do not filter.
type DeliveryFilter struct {
	txn.Query
	Status outbound.DeliveryStatus
	Event  string // the id of an event
}

// Deliveries lists the deliveries of a webhook, newest first.
func (ob *Outbox) Deliveries(
	ctx context.Context, org, repo, id string, f DeliveryFilter,
) (ledger.Page[outbound.Delivery], error) {
	return txn.Read(ctx, ob.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[outbound.Delivery], err error) {
		w, err := findWebhook(rd, org, repo, id)
		if err != nil {
			return list, err
		}
		l := rd.Listing("deliveries", w.ID)
		before, err := beforeDelivery(l, f.Query)
		if err != nil {
			return list, err
		}
		walk, err := walkOf(rd, f, org, w.ID)
		if err != nil {
			return list, err
		}
		p, err := walk.Run(rd.Conn, []any{before}, f.Limit, txn.MaxExamined)
		if err != nil {
			return list, fmt.Errorf("list deliveries: %w", err)
		}
		return deliveryPage(p, l)
	})
}

// walkOf returns the walk by which a webhook's deliveries are listed.
func walkOf(
	rd txn.Reader, f DeliveryFilter, org string, webhook int64,
) (txn.Walk[outbound.Delivery], error) {
	w := txn.Walk[outbound.Delivery]{
		From: "outbox o", Where: "o.webhook_id = ?", Args: []any{webhook},
		Keys: []string{"o.delivery_id"}, Down: true,
		Key:     func(d txn.Keyed[outbound.Delivery]) []any { return []any{d.Row.ID} },
		Columns: deliveryColumns, Joins: deliveryJoins,
		Scan: func(row txn.Scanner) (d txn.Keyed[outbound.Delivery], err error) {
			d.Row, err = scanDelivery(rd.Now)(row)
			return d, err
		},
	}

	switch {
	case f.Event != "":
		orgID, err := rd.OrgID(org)
		if err != nil {
			return w, err
		}
		event, err := events.Find(rd, orgID, f.Event)
		w.From += " /*+index outbox_by_event*/"
		switch {
		case errors.Is(err, sql.ErrNoRows): // a ping is not an event of the org
			w.Where += " AND o.event IS NULL"
			w.Filter, w.FilterArgs = " AND o.ping ->> 'id' = ?", []any{f.Event}
		case err != nil:
			return w, err
		default:
			w.Where, w.Args = w.Where+" AND o.event = ?", append(w.Args, event.Row)
		}
	case f.Status == outbound.DeliveryFailed:
		w.From += " /*+index outbox_failed*/"
		w.Where += " AND o.status = 'failed'"
		return w, nil
	}
	if f.Status != "" {
		w.Filter, w.FilterArgs = w.Filter+" AND o.status = ?", append(w.FilterArgs, f.Status)
	}
	return w, nil
}

// beforeDelivery returns the id of a delivery that the query's cursor has. If there is no cursor, it returns a
// string that sorts after all ids of deliveries.
func beforeDelivery(l txn.Listing, q txn.Query) (string, error) {
	position, err := l.Position(q, 2)
	if position == nil {
		return txn.DeliveryPrefix + "~", err
	}
	var id ulid.ULID
	binary.BigEndian.PutUint64(id[:8], uint64(position[0]))
	binary.BigEndian.PutUint64(id[8:], uint64(position[1]))
	return txn.DeliveryPrefix + id.String(), nil
}

func deliveryPage(p txn.Section[outbound.Delivery], l txn.Listing) (list ledger.Page[outbound.Delivery], err error) {
	list.Data = p.Data()
	if p.End == nil {
		return list, nil
	}
	id, err := ulid.ParseStrict(strings.TrimPrefix(p.End[0].(string), txn.DeliveryPrefix))
	if err != nil {
		return list, fmt.Errorf("parse the ID of a delivery: %w", err)
	}
	list.NextCursor = l.Cursor(int64(binary.BigEndian.Uint64(id[:8])), int64(binary.BigEndian.Uint64(id[8:])))
	return list, nil
}

func findDelivery(rd txn.Reader, webhook int64, id string) (outbound.Delivery, error) {
	d, err := scanDelivery(rd.Now)(rd.Row(selectDelivery+"WHERE o.webhook_id = ? AND o.delivery_id = ?", webhook, id))
	return d, txn.Missing(err, "delivery %s not found", id)
}

// newestAttempts is the maximum number of attempts in a delivery record.
const newestAttempts = 100

// Delivery returns a delivery with its newest attempts, oldest first.
func (ob *Outbox) Delivery(ctx context.Context, org, repo, id, delivery string) (outbound.DeliveryRecord, error) {
	return txn.Read(ctx, ob.db, txn.ByOrg(org), func(rd txn.Reader) (d outbound.DeliveryRecord, err error) {
		w, err := findWebhook(rd, org, repo, id)
		if err != nil {
			return d, err
		}
		if d.Delivery, err = findDelivery(rd, w.ID, delivery); err != nil {
			return d, err
		}
		err = rd.Row(`
SELECT coalesce(e.body, o.ping) FROM outbox o LEFT JOIN events e ON e.id = o.event
WHERE o.webhook_id = ? AND o.delivery_id = ?`, w.ID, delivery).
			Scan((*[]byte)(&d.Body))
		if err != nil {
			return d, fmt.Errorf("read body: %w", err)
		}

		d.History, err = txn.All(rd, scanAttempt, `
SELECT number, at, duration_ms, error, request, response FROM attempts
WHERE webhook_id = ? AND delivery_id = ? ORDER BY number DESC LIMIT ?`, w.ID, delivery, newestAttempts)
		slices.Reverse(d.History)
		return d, err
	})
}

func scanAttempt(row txn.Scanner) (outbound.Attempt, error) {
	var a outbound.Attempt
	var request, response []byte
	if err := row.Scan(&a.Number, &a.At, &a.DurationMS, &a.Error, &request, &response); err != nil {
		return a, err
	}
	return a, errors.Join(json.Unmarshal(request, &a.Request), json.Unmarshal(response, &a.Response))
}

// activeWebhook is like findWebhook, but returns CodeWebhookInactive if the webhook is
// not active.
func activeWebhook(t *txn.Tx, org, repo, id string) (txn.Keyed[outbound.Webhook], error) {
	w, err := findWebhook(t.Reader, org, repo, id)
	if err == nil && !w.Row.Active {
		err = ledger.Errorf(ledger.CodeWebhookInactive, "webhook %s is not active: activate it first", id)
	}
	return w, err
}

// PingWebhook queues a test delivery. It returns CodeWebhookInactive if the webhook is
// not active.
func (ob *Outbox) PingWebhook(ctx context.Context, org, repo, id string) (outbound.Delivery, error) {
	return txn.Write(ctx, ob.db, sqldb.Write{Org: org}, func(t *txn.Tx) (d outbound.Delivery, err error) {
		w, err := activeWebhook(t, org, repo, id)
		if err != nil {
			return d, err
		}
		orgID, err := t.OrgID(org)
		if err != nil {
			return d, err
		}
		eventID, err := t.NewID(orgID, txn.EventPrefix)
		if err != nil {
			return d, err
		}
		deliveryID, err := t.NewID(orgID, txn.DeliveryPrefix)
		if err != nil {
			return d, err
		}

		body := ledger.Render(ledger.PingEvent{ID: eventID, Org: w.Row.Org, Repo: w.Row.Repo, Webhook: id, Timestamp: t.Now})
		_, err = t.Exec(`
INSERT INTO outbox (webhook_id, delivery_id, ping, status, due_at, created_at)
VALUES (?, ?, ?, 'pending', ?, ?)`, w.ID, deliveryID, string(body), dueAtOnce, t.Now)
		if err != nil {
			return d, fmt.Errorf("insert ping: %w", err)
		}
		ob.journal.Queue(id)
		if err := ob.auditWebhook(t, ledger.AuditWebhookPinged, w.Row, nil, nil); err != nil {
			return d, err
		}
		return findDelivery(t.Reader, w.ID, deliveryID)
	})
}

// redeliver makes a delivery due. If an attempt is running, it keeps the lease, which ends within an
// hour unless it is of a clock that was ahead. The parameters are the current time, the webhook and the
// delivery.
const redeliver = `
UPDATE outbox
SET status = 'pending', tries = 0, ended_at = 0,
  leased = CASE WHEN leased = 1 AND due_at > ?1 AND due_at < ?1 + 3600000 THEN 1 ELSE 0 END,
  due_at = CASE WHEN leased = 1 AND due_at > ?1 AND due_at < ?1 + 3600000 THEN due_at ELSE 1 END
WHERE webhook_id = ?2 AND delivery_id = ?3`

// Redeliver makes a delivery due now, whatever its status, before all other deliveries
// and with the full schedule of retries. If an attempt is running and fails, the
// delivery is tried again immediately. Redeliver returns CodeWebhookInactive if the
// webhook is not active.
func (ob *Outbox) Redeliver(ctx context.Context, org, repo, id, delivery string) (outbound.Delivery, error) {
	return txn.Write(ctx, ob.db, sqldb.Write{Org: org}, func(t *txn.Tx) (d outbound.Delivery, err error) {
		w, err := activeWebhook(t, org, repo, id)
		if err != nil {
			return d, err
		}
		if _, err := t.Exec(redeliver, t.Now, w.ID, delivery); err != nil {
			return d, fmt.Errorf("update delivery: %w", err)
		}
		ob.journal.Queue(id)
		if d, err = findDelivery(t.Reader, w.ID, delivery); err != nil {
			return d, err
		}
		return d, ob.auditWebhook(t, ledger.AuditWebhookRedelivered, w.Row, nil,
			[]ledger.Field{{Name: "delivery", Value: delivery}, {Name: "event", Value: d.Event}})
	})
}

// replayBatch is the number of events that one write of a replay reads.
const replayBatch = 500

// ReplayWebhook queues the events since a time that have one of the webhook's event
// types, unless their delivery has succeeded or is pending. It returns the number of
// queued deliveries. They stay queued if it returns an error.
func (ob *Outbox) ReplayWebhook(
	ctx context.Context, org, repo, id string, since ledger.Time,
) (queued int64, err error) {
	type seqRange struct{ next, end int64 }
	seqs, err := txn.Read(ctx, ob.db, txn.ForWrite(org), func(rd txn.Reader) (seqs seqRange, err error) {
		if _, err := findWebhook(rd, org, repo, id); err != nil {
			return seqs, err
		}
		var orgID int64
		if err := rd.Row("SELECT id, next_seq FROM orgs WHERE name = ?", org).Scan(&orgID, &seqs.end); err != nil {
			return seqs, fmt.Errorf("read org: %w", err)
		}
		seqs.next, err = events.FirstSince(rd, orgID, seqs.end, since)
		return seqs, err
	})

	for first := true; err == nil && (first || seqs.next < seqs.end); seqs.next += replayBatch {
		var n int64
		n, err = txn.Write(ctx, ob.db, sqldb.Write{Org: org}, func(t *txn.Tx) (int64, error) {
			if first {
				if err := ob.auditReplay(t, org, repo, id, since); err != nil {
					return 0, err
				}
			}
			return ob.replay(t, org, repo, id, seqs.next, min(seqs.next+replayBatch, seqs.end))
		})
		queued += n
		first = false
	}
	return queued, err
}

// auditReplay appends the event of a replay.
func (ob *Outbox) auditReplay(t *txn.Tx, org, repo, id string, since ledger.Time) error {
	w, err := findWebhook(t.Reader, org, repo, id)
	if err != nil {
		return err
	}
	return ob.auditWebhook(t, ledger.AuditWebhookReplayed, w.Row, nil, []ledger.Field{{Name: "since", Value: since}})
}

// replay queues the events with sequence numbers in [first, end) that the webhook has
// missed.
func (ob *Outbox) replay(t *txn.Tx, org, repo, id string, first, end int64) (queued int64, err error) {
	w, err := activeWebhook(t, org, repo, id)
	if err != nil {
		return 0, err
	}
	r, err := t.FindRepo(org, repo)
	if err != nil {
		return 0, err
	}
	events, err := txn.All(t.Reader, scanReplayEvent, replayEvents, r.OrgID, first, end, r.ID)
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}

	wanted := txn.TypeSetOf(w.Row.Events)
	for _, e := range events {
		if wanted&txn.TypeBit(e.kind) == 0 {
			continue
		}
		n, err := requeue(t, r.OrgID, w.ID, e.id)
		if err != nil {
			return 0, err
		}
		queued += n
	}

	if queued > 0 {
		ob.journal.Queue(id)
	}
	return queued, nil
}

const replayEvents = `
SELECT id, type FROM events
WHERE org_id = ? AND seq >= ? AND seq < ? AND (repo_id = ? OR repo_id IS NULL) AND length(body) > 0 ORDER BY seq`

type replayEvent struct {
	id   int64
	kind ledger.EventType
}

func scanReplayEvent(row txn.Scanner) (replayEvent, error) {
	var e replayEvent
	err := row.Scan(&e.id, &e.kind)
	return e, err
}

// requeue queues an event for a webhook if it has no delivery, a failed one, or one that waits for
// longer than any schedule, because of a clock that was ahead. It returns the number of queued
// deliveries, 0 or 1.
func requeue(t *txn.Tx, orgID, webhook, event int64) (int64, error) {
	deliveryID, err := t.NewID(orgID, txn.DeliveryPrefix)
	if err != nil {
		return 0, err
	}
	queued, err := t.Exec(`
INSERT INTO outbox (webhook_id, delivery_id, event, status, due_at, created_at)
VALUES (?, ?, ?, 'pending', ?, ?)
ON CONFLICT (webhook_id, event) DO UPDATE
SET status = 'pending', due_at = excluded.due_at, leased = 0, tries = 0, ended_at = 0
WHERE outbox.status = 'failed' OR outbox.due_at > excluded.due_at + 172800000`,
		webhook, deliveryID, event, t.Now, t.Now)
	if err != nil {
		return 0, fmt.Errorf("queue event: %w", err)
	}
	return queued, nil
}
