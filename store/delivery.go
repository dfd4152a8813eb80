package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// selectDelivery reads deliveries with how the last attempt ended.
const selectDelivery = `
SELECT o.delivery_id, w.webhook_id, coalesce(e.event_id, o.ping ->> 'id'), coalesce(e.type, 'ping'), o.status, o.attempts, o.created_at, o.due_at, coalesce(a.status, 0), coalesce(a.error, '')
FROM outbox o JOIN webhooks w ON w.id = o.webhook_id LEFT JOIN events e ON e.id = o.event
LEFT JOIN attempts a ON a.webhook_id = o.webhook_id AND a.delivery_id = o.delivery_id AND a.number = o.attempts `

func scanDelivery(row scanner) (ledger.Delivery, error) {
	var d ledger.Delivery
	err := row.Scan(&d.ID, &d.Webhook, &d.Event, &d.Type, &d.Status, &d.Attempts, &d.CreatedAt, &d.NextAttemptAt, &d.LastStatus, &d.LastError)
	return d, err
}

// A DeliveryFilter says which deliveries a list holds. Empty members do not filter.
type DeliveryFilter struct {
	Query
	Status ledger.DeliveryStatus
	Event  string // an event's id
}

// Deliveries lists the deliveries of a webhook, newest first.
func (s *Store) Deliveries(ctx context.Context, org, repo, id string, f DeliveryFilter) (list ledger.Page[ledger.Delivery], err error) {
	before, err := f.before(deliveryPrefix)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		w, err := findWebhook(c, org, repo, id, s.Now())
		if err != nil {
			return err
		}
		where, args := "WHERE o.webhook_id = ? AND o.delivery_id < ?", []any{w.id, before}
		switch f.Status {
		case ledger.DeliveryFailed:
			where += " AND o.status = 'failed'" // the words of its index
		case ledger.DeliveryPending:
			where += " AND o.due_at > 0 AND o.status = 'pending'"
		case ledger.DeliverySucceeded:
			where += " AND o.status = 'succeeded'"
		}
		if f.Event != "" {
			where, args = where+" AND coalesce(e.event_id, o.ping ->> 'id') = ?", append(args, f.Event)
			if _, ok := idTime(eventPrefix, f.Event); ok {
				where, args = where+" AND (o.event IS NULL OR o.event = (SELECT id FROM events WHERE event_id = ?))", append(args, f.Event)
			}
		}
		rows, err := all(c, scanDelivery, selectDelivery+where+" ORDER BY o.delivery_id DESC LIMIT ?", append(args, f.Limit+1)...)
		list = deliveryPage(rows, f.Limit)
		return err
	})
	return list, err
}

// before returns the id that the query's cursor holds, or one beyond all of
// that prefix.
func (q Query) before(prefix string) (string, error) {
	if q.Cursor == "" {
		return prefix + "~", nil
	}
	id, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if _, ok := idTime(prefix, string(id)); err != nil || !ok {
		return "", errCursor
	}
	return string(id), nil
}

func deliveryPage(rows []ledger.Delivery, limit int) ledger.Page[ledger.Delivery] {
	p := ledger.Page[ledger.Delivery]{Data: rows}
	if len(rows) > limit {
		p.Data = rows[:limit]
		p.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(rows[limit-1].ID))
	}
	return p
}

func findDelivery(c *conn, webhook int64, id string) (ledger.Delivery, error) {
	d, err := scanDelivery(c.row(selectDelivery+"WHERE o.webhook_id = ? AND o.delivery_id = ?", webhook, id))
	return d, missing(err, "delivery %s", id)
}

// Delivery returns a delivery with its attempts.
func (s *Store) Delivery(ctx context.Context, org, repo, id, delivery string) (d ledger.DeliveryRecord, err error) {
	err = s.read(ctx, func(c *conn) error {
		w, err := findWebhook(c, org, repo, id, s.Now())
		if err != nil {
			return err
		}
		if d.Delivery, err = findDelivery(c, w.id, delivery); err != nil {
			return err
		}
		err = c.row("SELECT coalesce(e.body, o.ping) FROM outbox o LEFT JOIN events e ON e.id = o.event WHERE o.webhook_id = ? AND o.delivery_id = ?", w.id, delivery).
			Scan((*[]byte)(&d.Body))
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		d.History, err = all(c, scanAttempt, "SELECT number, at, duration_ms, error, request, response FROM attempts WHERE webhook_id = ? AND delivery_id = ? ORDER BY number", w.id, delivery)
		return err
	})
	return d, err
}

func scanAttempt(row scanner) (ledger.Attempt, error) {
	var a ledger.Attempt
	var request, response []byte
	if err := row.Scan(&a.Number, &a.At, &a.DurationMS, &a.Error, &request, &response); err != nil {
		return a, err
	}
	return a, errors.Join(json.Unmarshal(request, &a.Request), json.Unmarshal(response, &a.Response))
}

// activeWebhook is findWebhook for what only an active webhook can do.
func activeWebhook(t *tx, org, repo, id string) (keyed[ledger.Webhook], error) {
	w, err := findWebhook(t.conn, org, repo, id, t.now)
	if err == nil && !w.row.Active {
		err = ledger.Errorf(ledger.CodeWebhookInactive, "webhook %s is not active: make it active first", id)
	}
	return w, err
}

// PingWebhook queues a delivery that tells nothing but that it arrives.
func (s *Store) PingWebhook(ctx context.Context, org, repo, id string) (d ledger.Delivery, err error) {
	err = s.write(ctx, func(t *tx) error {
		w, err := activeWebhook(t, org, repo, id)
		if err != nil {
			return err
		}
		eventID, err := t.ids.next(eventPrefix, t.now)
		if err != nil {
			return err
		}
		deliveryID, err := t.ids.next(deliveryPrefix, t.now)
		if err != nil {
			return err
		}
		body := ledger.Render(ledger.PingEvent{ID: eventID, Org: w.row.Org, Repo: w.row.Repo, Webhook: id, Timestamp: t.now})
		_, err = t.exec("INSERT INTO outbox (webhook_id, delivery_id, ping, status, due_at, created_at) VALUES (?, ?, ?, 'pending', ?, ?)", w.id, deliveryID, string(body), t.now, t.now)
		if err != nil {
			return fmt.Errorf("insert ping: %w", err)
		}
		t.queue(id)
		d, err = findDelivery(t.conn, w.id, deliveryID)
		return err
	})
	return d, err
}

// Redeliver makes a delivery due now, whatever became of it, with the whole
// schedule of retries before it. One that is being tried at this moment is
// left to that.
func (s *Store) Redeliver(ctx context.Context, org, repo, id, delivery string) (d ledger.Delivery, err error) {
	err = s.write(ctx, func(t *tx) error {
		w, err := activeWebhook(t, org, repo, id)
		if err != nil {
			return err
		}
		_, err = t.exec("UPDATE outbox SET status = 'pending', due_at = ?1, leased = 0, tries = 0 WHERE webhook_id = ?2 AND delivery_id = ?3 AND (leased = 0 OR due_at <= ?1)", t.now, w.id, delivery)
		if err != nil {
			return fmt.Errorf("update delivery: %w", err)
		}
		t.queue(id)
		d, err = findDelivery(t.conn, w.id, delivery)
		return err
	})
	return d, err
}

// replayBatch is how many events one write of a replay looks at.
const replayBatch = 500

// ReplayWebhook queues the events since a time that the webhook wants and has
// neither acknowledged nor waiting. It returns how many those are. What was
// queued stays so when it ends with an error.
func (s *Store) ReplayWebhook(ctx context.Context, org, repo, id string, since ledger.Time) (queued int64, err error) {
	var next, end int64 // sequence numbers in the org's log
	err = s.read(ctx, func(c *conn) error {
		if _, err := findWebhook(c, org, repo, id, s.Now()); err != nil {
			return err
		}
		return c.row(`
SELECT coalesce((SELECT seq FROM events e WHERE e.org_id = o.id AND e.event_id >= ? ORDER BY e.event_id LIMIT 1), o.next_seq), o.next_seq FROM orgs o WHERE o.name = ?`,
			firstID(eventPrefix, since), org).Scan(&next, &end)
	})
	for first := true; err == nil && (first || next < end); next += replayBatch {
		var n int64
		err = s.write(ctx, func(t *tx) error {
			n, err = t.replay(org, repo, id, next, min(next+replayBatch, end))
			return err
		})
		queued += n
		first = false
	}
	return queued, err
}

// replay queues what the webhook has missed of the events numbered from first
// up to, not including, end.
func (t *tx) replay(org, repo, id string, first, end int64) (queued int64, err error) {
	w, err := activeWebhook(t, org, repo, id)
	if err != nil {
		return 0, err
	}
	r, err := findRepo(t.conn, org, repo)
	if err != nil {
		return 0, err
	}
	events, err := all(t.conn, scanMissed, "SELECT id, type FROM events WHERE org_id = ? AND seq >= ? AND seq < ? AND repo_id = ? ORDER BY seq", r.orgID, first, end, r.id)
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	wanted := typeSetOf(w.row.Events)
	for _, e := range events {
		if wanted&typeBit(e.kind) == 0 {
			continue
		}
		n, err := t.requeue(w.id, e.id)
		if err != nil {
			return 0, err
		}
		queued += n
	}
	if queued > 0 {
		t.queue(id)
	}
	return queued, nil
}

type missedEvent struct {
	id   int64
	kind ledger.EventType
}

func scanMissed(row scanner) (missedEvent, error) {
	var e missedEvent
	err := row.Scan(&e.id, &e.kind)
	return e, err
}

// requeue queues an event that a webhook has never been sent, or that failed.
// It returns 1, or 0 where neither is so.
func (t *tx) requeue(webhook, event int64) (int64, error) {
	deliveryID, err := t.ids.next(deliveryPrefix, t.now)
	if err != nil {
		return 0, err
	}
	result, err := t.exec(`
INSERT INTO outbox (webhook_id, delivery_id, event, status, due_at, created_at) VALUES (?, ?, ?, 'pending', ?, ?)
ON CONFLICT (webhook_id, event) DO UPDATE SET status = 'pending', due_at = excluded.due_at, tries = 0 WHERE status = 'failed'`, webhook, deliveryID, event, t.now, t.now)
	if err != nil {
		return 0, fmt.Errorf("queue event: %w", err)
	}
	return result.RowsAffected()
}
