package webhooks

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// dueAtOnce is the due_at of deliveries that go before all others: those requested by a
// person, and those that were claimed and released.
const dueAtOnce ledger.Time = 1

const dueWebhooks = `
SELECT webhook_id FROM webhooks w
WHERE active = 1 AND EXISTS (SELECT 1 FROM outbox WHERE webhook_id = w.id AND due_at > 0 AND due_at <= ?)`

// DueWebhooks returns the ids of the active webhooks that have due deliveries.
func (ob *Outbox) DueWebhooks(ctx context.Context) ([]string, error) {
	ids, err := txn.ReadLoose(ctx, ob.db, txn.ForWrite(""), func(rd txn.Reader) ([]string, error) {
		return txn.All(rd, txn.ScanText, dueWebhooks, rd.Now)
	})
	if err != nil {
		return nil, fmt.Errorf("read due webhooks: %w", err)
	}
	return ids, nil
}

// claim leases due deliveries of a webhook. Its parameters are the end of the lease, the
// webhook, the current time and the number of deliveries.
const claim = `
UPDATE outbox SET due_at = ?1, leased = 1
WHERE webhook_id = ?2 AND delivery_id IN (
  SELECT delivery_id FROM outbox WHERE webhook_id = ?2 AND due_at > 0 AND due_at <= ?3
  ORDER BY due_at, delivery_id LIMIT ?4)
RETURNING delivery_id, event, ping, attempts, tries`

// Claim leases up to limit due deliveries of a webhook, longest due first. No other
// dispatcher can claim them until the lease expires. It returns none if the webhook is
// inactive or deleted. If the writer is busy, it waits.
func (ob *Outbox) Claim(
	ctx context.Context, webhook string, limit int, lease time.Duration,
) (outbound.Endpoint, []outbound.DueDelivery, error) {
	if err := ob.db.WaitTurn(ctx); err != nil {
		return outbound.Endpoint{}, nil, fmt.Errorf("claim deliveries: %w", err)
	}
	owners, err := ob.ownersOfWebhooks(ctx, webhook)
	if err != nil {
		return outbound.Endpoint{}, nil, fmt.Errorf("claim deliveries: %w", err)
	}
	c, err := txn.Write(ctx, ob.db, sqldb.Write{Yields: true, Owners: owners}, func(t *txn.Tx) (claimed, error) {
		return ob.claim(t, webhook, limit, lease)
	})
	if err != nil {
		return c.endpoint, nil, fmt.Errorf("claim deliveries: %w", err)
	}
	slices.SortFunc(c.rows, claimedRow.compare)
	due, err := ob.bodies(ctx, c.rows)
	return c.endpoint, due, err
}

// claimed is the result of a claim.
type claimed struct {
	endpoint outbound.Endpoint
	rows     []claimedRow
}

// claim claims nothing if it cannot decrypt the secrets.
func (ob *Outbox) claim(t *txn.Tx, webhook string, limit int, lease time.Duration) (claimed, error) {
	c := claimed{endpoint: outbound.Endpoint{Webhook: webhook}}
	e := &c.endpoint
	h := sealedSecrets{public: webhook}
	err := t.Row(`
SELECT id, url, secret, previous_secret, previous_until, auth_header FROM webhooks
WHERE webhook_id = ? AND active = 1`, webhook).
		Scan(&h.id, &e.URL, &h.secret, &h.previous, &h.previousUntil, &h.authorization)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read webhook: %w", err)
	}

	opened, err := h.open(ob.keys, t.Now)
	if err != nil {
		return c, err
	}
	e.Secret, e.PreviousSecret, e.PreviousUntil = opened.secret, opened.previous, h.previousUntil
	e.Authorization = opened.authorization.header()

	until := t.Now.Add(lease)
	c.rows, err = txn.All(t.Reader, scanClaimed, claim, until, h.id, t.Now, limit)
	for i := range c.rows {
		c.rows[i].due.Lease = until
	}
	return c, err
}

// A claimedRow is a claimed delivery without its event.
type claimedRow struct {
	due   outbound.DueDelivery
	event sql.NullInt64
	ping  sql.NullString
}

// compare orders deliveries: pings first, because a person waits for them, then the
// oldest first.
func (r claimedRow) compare(other claimedRow) int {
	if r.ping.Valid != other.ping.Valid {
		if r.ping.Valid {
			return -1
		}
		return 1
	}
	return cmp.Compare(r.due.ID, other.due.ID)
}

func scanClaimed(row txn.Scanner) (claimedRow, error) {
	var r claimedRow
	err := row.Scan(&r.due.ID, &r.event, &r.ping, &r.due.Attempts, &r.due.Tries)
	return r, err
}

// bodies returns the claimed deliveries with their events, which it reads outside the
// writer. It leaves out events that were pruned since then: their webhook was deleted.
func (ob *Outbox) bodies(ctx context.Context, rows []claimedRow) ([]outbound.DueDelivery, error) {
	due, err := txn.ReadLoose(ctx, ob.db, txn.ForWrite(""), func(rd txn.Reader) ([]outbound.DueDelivery, error) {
		due := make([]outbound.DueDelivery, 0, len(rows))
		for _, r := range rows {
			d := r.due
			var err error
			if r.ping.Valid {
				d.Type, d.Body = ledger.EventPing, []byte(r.ping.String)
				d.Event, err = pingID(d.Body)
			} else {
				err = rd.Row("SELECT event_id, type, body FROM events WHERE id = ?", r.event).
					Scan(&d.Event, &d.Type, &d.Body)
			}
			if err != nil {
				return nil, err
			}

			if len(d.Body) > 0 {
				due = append(due, d)
			}
		}
		return due, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read events of deliveries: %w", err)
	}
	return due, nil
}

// pingID returns the id in the body of a ping.
func pingID(body []byte) (string, error) {
	var ping ledger.PingEvent
	if err := json.Unmarshal(body, &ping); err != nil {
		return "", fmt.Errorf("parse ping: %w", err)
	}
	return ping.ID, nil
}

// Release ends the leases of deliveries that were claimed but not tried, and makes these
// due before all others. A lease that has ended is not touched: another dispatcher may have
// claimed the delivery since.
func (ob *Outbox) Release(ctx context.Context, webhook string, deliveries []outbound.DueDelivery) error {
	owners, err := ob.ownersOfWebhooks(ctx, webhook)
	if err != nil {
		return fmt.Errorf("release deliveries: %w", err)
	}
	return ob.db.WriteFor(ctx, owners, func(t *txn.Tx) error {
		for _, d := range deliveries {
			_, err := t.Exec(`
UPDATE outbox SET due_at = ?, leased = 0
WHERE webhook_id = (SELECT id FROM webhooks WHERE webhook_id = ?) AND delivery_id = ? AND leased = 1
  AND due_at = ?`, dueAtOnce, webhook, d.ID, d.Lease)
			if err != nil {
				return fmt.Errorf("release delivery: %w", err)
			}
		}
		ob.journal.Queue(webhook)
		return nil
	})
}
