package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"sort"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
)

// selectDelivery reads deliveries with how the last attempt ended.
const selectDelivery = `
SELECT o.delivery_id, w.webhook_id, coalesce(e.event_id, o.ping ->> 'id'), coalesce(e.type, 'ping'), o.status, o.attempts,
  o.created_at, o.due_at, o.leased, w.active, coalesce(a.status, 0), coalesce(a.error, '')
FROM outbox o JOIN webhooks w ON w.id = o.webhook_id LEFT JOIN events e ON e.id = o.event
LEFT JOIN attempts a ON a.webhook_id = o.webhook_id AND a.delivery_id = o.delivery_id AND a.number = o.attempts `

// scanDelivery returns what scans a delivery as it is seen at that time.
func scanDelivery(now ledger.Time) func(scanner) (ledger.Delivery, error) {
	return func(row scanner) (ledger.Delivery, error) {
		var d ledger.Delivery
		var due ledger.Time
		var leased, active bool
		err := row.Scan(&d.ID, &d.Webhook, &d.Event, &d.Type, &d.Status, &d.Attempts,
			&d.CreatedAt, &due, &leased, &active, &d.LastStatus, &d.LastError)
		switch {
		case !active, leased && due > now: // nothing is sent, or it is at this moment
		case due == dueAtOnce:
			d.NextAttemptAt = now
		default:
			d.NextAttemptAt = due
		}
		return d, err
	}
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
		query, args, err := f.page(c, w.id, before)
		if err != nil {
			return err
		}
		rows, err := all(c, scanDelivery(s.Now()), query, args...)
		list = deliveryPage(rows, f.Limit)
		return err
	})
	return list, err
}

// The ids of one page of a webhook's deliveries: ?1 is the webhook, ?2 the id
// before which the page begins, ?3 how many, and for those of an event ?4 the
// event and ?5 the status or nothing. Those that wait are sorted: the index
// that has no others has them by when they are due.
const (
	anyDeliveries = `
SELECT delivery_id FROM outbox WHERE webhook_id = ?1 AND delivery_id < ?2
ORDER BY delivery_id DESC LIMIT ?3`
	succeededDeliveries = `
SELECT delivery_id FROM outbox WHERE webhook_id = ?1 AND delivery_id < ?2 AND status = 'succeeded'
ORDER BY delivery_id DESC LIMIT ?3`
	failedDeliveries = `
SELECT delivery_id FROM outbox INDEXED BY outbox_failed WHERE webhook_id = ?1 AND delivery_id < ?2 AND status = 'failed'
ORDER BY delivery_id DESC LIMIT ?3`
	pendingDeliveries = `
SELECT delivery_id FROM outbox INDEXED BY outbox_due WHERE webhook_id = ?1 AND delivery_id < ?2 AND due_at > 0
ORDER BY delivery_id DESC LIMIT ?3`
	eventDeliveries = `
SELECT delivery_id FROM outbox INDEXED BY outbox_by_event
WHERE webhook_id = ?1 AND event = ?4 AND delivery_id < ?2 AND ?5 IN ('', status)
ORDER BY delivery_id DESC LIMIT ?3`
	// Pings are few, and the index of events has them together.
	pingDeliveries = `
SELECT delivery_id FROM outbox INDEXED BY outbox_by_event
WHERE webhook_id = ?1 AND event IS NULL AND delivery_id < ?2 AND ping ->> 'id' = ?4 AND ?5 IN ('', status)
ORDER BY delivery_id DESC LIMIT ?3`
)

// deliveriesIn returns the query for the deliveries whose ids another gives.
func deliveriesIn(ids string) string {
	return selectDelivery + "WHERE o.webhook_id = ?1 AND o.delivery_id IN (" + ids + ") ORDER BY o.delivery_id DESC"
}

// page returns the query for a page and one row more.
func (f DeliveryFilter) page(c *conn, webhook int64, before string) (query string, args []any, err error) {
	args = []any{webhook, before, f.Limit + 1}
	switch {
	case f.Event != "":
		var event int64
		err := c.row("SELECT id FROM events WHERE event_id = ?", f.Event).Scan(&event)
		if errors.Is(err, sql.ErrNoRows) {
			return deliveriesIn(pingDeliveries), append(args, f.Event, f.Status), nil
		}
		return deliveriesIn(eventDeliveries), append(args, event, f.Status), err
	case f.Status == ledger.DeliverySucceeded:
		return deliveriesIn(succeededDeliveries), args, nil
	case f.Status == ledger.DeliveryFailed:
		return deliveriesIn(failedDeliveries), args, nil
	case f.Status == ledger.DeliveryPending:
		return deliveriesIn(pendingDeliveries), args, nil
	}
	return deliveriesIn(anyDeliveries), args, nil
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

func findDelivery(c *conn, webhook int64, id string, now ledger.Time) (ledger.Delivery, error) {
	d, err := scanDelivery(now)(c.row(selectDelivery+"WHERE o.webhook_id = ? AND o.delivery_id = ?", webhook, id))
	return d, missing(err, "delivery %s", id)
}

// Delivery returns a delivery with its attempts.
func (s *Store) Delivery(ctx context.Context, org, repo, id, delivery string) (d ledger.DeliveryRecord, err error) {
	err = s.read(ctx, func(c *conn) error {
		w, err := findWebhook(c, org, repo, id, s.Now())
		if err != nil {
			return err
		}
		if d.Delivery, err = findDelivery(c, w.id, delivery, s.Now()); err != nil {
			return err
		}
		err = c.row(`
SELECT coalesce(e.body, o.ping) FROM outbox o LEFT JOIN events e ON e.id = o.event
WHERE o.webhook_id = ? AND o.delivery_id = ?`, w.id, delivery).
			Scan((*[]byte)(&d.Body))
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		d.History, err = all(c, scanAttempt, `
SELECT number, at, duration_ms, error, request, response FROM attempts
WHERE webhook_id = ? AND delivery_id = ? ORDER BY number`, w.id, delivery)
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
		_, err = t.exec(`
INSERT INTO outbox (webhook_id, delivery_id, ping, status, due_at, created_at)
VALUES (?, ?, ?, 'pending', ?, ?)`, w.id, deliveryID, string(body), dueAtOnce, t.now)
		if err != nil {
			return fmt.Errorf("insert ping: %w", err)
		}
		t.queue(id)
		d, err = findDelivery(t.conn, w.id, deliveryID, t.now)
		return err
	})
	return d, err
}

// redeliver leaves the lease of a delivery that is being tried as it is. Its
// parameters: now, the webhook, the delivery.
const redeliver = `
UPDATE outbox
SET status = 'pending', tries = 0, ended_at = 0,
  leased = iif(leased = 1 AND due_at > ?1, 1, 0),
  due_at = iif(leased = 1 AND due_at > ?1, due_at, 1)
WHERE webhook_id = ?2 AND delivery_id = ?3`

// Redeliver makes a delivery due now, before all that waits and whatever became
// of it, with the whole schedule of retries before it. One that is being tried
// at this moment begins anew if that fails.
func (s *Store) Redeliver(ctx context.Context, org, repo, id, delivery string) (d ledger.Delivery, err error) {
	err = s.write(ctx, func(t *tx) error {
		w, err := activeWebhook(t, org, repo, id)
		if err != nil {
			return err
		}
		if _, err := t.exec(redeliver, t.now, w.id, delivery); err != nil {
			return fmt.Errorf("update delivery: %w", err)
		}
		t.queue(id)
		d, err = findDelivery(t.conn, w.id, delivery, t.now)
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
		var orgID int64
		if err := c.row("SELECT id, next_seq FROM orgs WHERE name = ?", org).Scan(&orgID, &end); err != nil {
			return fmt.Errorf("read org: %w", err)
		}
		next, err = firstSince(c, orgID, end, since)
		return err
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

// firstSince returns the number of an org's first event since a time, or end,
// the number of its next one, where there is none. An event's time is not in an
// index, but as good as in the order of the numbers.
func firstSince(c *conn, orgID, end int64, since ledger.Time) (int64, error) {
	var failed error
	n := sort.Search(int(end), func(seq int) bool {
		if failed != nil {
			return true
		}
		var at ledger.Time
		failed = c.row(eventTime, orgID, seq).Scan(&at)
		return at >= since
	})
	if failed != nil {
		return 0, fmt.Errorf("find the first event since %s: %w", since, failed)
	}
	return int64(n), nil
}

const eventTime = "SELECT at FROM events WHERE org_id = ? AND seq = ?"

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
	events, err := all(t.conn, scanMissed, missedEvents, r.orgID, first, end, r.id)
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

const missedEvents = `
SELECT id, type FROM events
WHERE org_id = ? AND seq >= ? AND seq < ? AND repo_id = ? ORDER BY seq`

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
INSERT INTO outbox (webhook_id, delivery_id, event, status, due_at, created_at)
VALUES (?, ?, ?, 'pending', ?, ?)
ON CONFLICT (webhook_id, event) DO UPDATE
SET status = 'pending', due_at = excluded.due_at, tries = 0, ended_at = 0 WHERE status = 'failed'`,
		webhook, deliveryID, event, t.now, t.now)
	if err != nil {
		return 0, fmt.Errorf("queue event: %w", err)
	}
	return result.RowsAffected()
}
