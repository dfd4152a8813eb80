package webhooks

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// pruneBatch is the number of deliveries that one write deletes.
const pruneBatch = 500

// An oldDeliveries is a webhook with deliveries to prune: those that ended before a time, or all if
// the webhook was deleted.
type oldDeliveries struct {
	webhook, org int64
	before       ledger.Time
}

// PruneDeliveries deletes the deliveries that ended before the retention of the log, or as long ago as their
// repo keeps them, and deleted webhooks with their deliveries.
func (ob *Outbox) PruneDeliveries(ctx context.Context) error {
	now := ob.db.Clock.Now()
	type prunable struct{ old, deleted []oldDeliveries }
	webhooks, err := txn.Read(ctx, ob.db, txn.ForWrite(""), func(rd txn.Reader) (p prunable, err error) {
		p.old, err = txn.All(rd, func(row txn.Scanner) (o oldDeliveries, err error) {
			return o, row.Scan(&o.webhook, &o.org, &o.before)
		}, `
SELECT id, org_id, before FROM (
  SELECT w.id, r.org_id, CASE WHEN r.keep_deliveries > 0 AND r.keep_deliveries < ?2 THEN ?1 - r.keep_deliveries
    ELSE ?1 - ?2 END AS before
  FROM webhooks w JOIN repos r ON r.id = w.repo_id WHERE w.deleted_at = 0) w
WHERE EXISTS (SELECT 1 FROM outbox WHERE webhook_id = w.id AND ended_at > 0 AND ended_at < w.before)`,
			now, ob.retention.Milliseconds())
		if err != nil {
			return p, err
		}
		p.deleted, err = txn.All(rd, func(row txn.Scanner) (o oldDeliveries, err error) {
			return o, row.Scan(&o.webhook, &o.org)
		}, "SELECT w.id, r.org_id FROM webhooks w JOIN repos r ON r.id = w.repo_id WHERE w.deleted_at > 0")
		return p, err
	})
	if err != nil {
		return fmt.Errorf("read prunable rows: %w", err)
	}

	for _, o := range webhooks.old {
		if err := ob.db.Repeat(ctx, sqldb.Write{Owners: []int64{o.org}}, func(t *txn.Tx) (bool, error) {
			return prune(t, o.webhook, endedDeliveries, o.webhook, o.before, pruneBatch)
		}); err != nil {
			return fmt.Errorf("prune deliveries: %w", err)
		}
	}

	for _, o := range webhooks.deleted {
		batch := func(t *txn.Tx) (bool, error) { return pruneWebhook(t, o.webhook) }
		if err := ob.db.Repeat(ctx, sqldb.Write{Owners: []int64{o.org}}, batch); err != nil {
			return fmt.Errorf("prune deleted webhook: %w", err)
		}
	}
	return nil
}

// Queries for the deliveries of a webhook that ended before a time, and for all of them.
const (
	endedDeliveries = `
SELECT delivery_id FROM outbox WHERE webhook_id = ? AND ended_at > 0 AND ended_at < ?
ORDER BY ended_at LIMIT ?`
	allDeliveries = "SELECT delivery_id FROM outbox WHERE webhook_id = ? ORDER BY delivery_id LIMIT ?"
)

// prune deletes a batch of a webhook's deliveries, with their attempts. The query returns
// the ids of up to pruneBatch deliveries.
func prune(t *txn.Tx, webhook int64, query string, args ...any) (last bool, err error) {
	ids, err := txn.All(t.Reader, txn.ScanText, query, args...)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if _, err := t.Exec("DELETE FROM attempts WHERE webhook_id = ? AND delivery_id = ?", webhook, id); err != nil {
			return false, err
		}
		if _, err := t.Exec("DELETE FROM outbox WHERE webhook_id = ? AND delivery_id = ?", webhook, id); err != nil {
			return false, err
		}
	}
	return len(ids) < pruneBatch, nil
}

// pruneWebhook deletes a batch of a deleted webhook's deliveries, and after the last
// batch the webhook.
func pruneWebhook(t *txn.Tx, id int64) (last bool, err error) {
	last, err = prune(t, id, allDeliveries, id, pruneBatch)
	if err == nil && last {
		_, err = t.Exec("DELETE FROM webhooks WHERE id = ?", id)
	}
	return last, err
}
