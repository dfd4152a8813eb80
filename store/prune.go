package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/radarindex"
)

// pruneInterval is how often Tidy prunes.
const pruneInterval = time.Minute

// pruneBatch is the number of deliveries that one write deletes.
const pruneBatch = 500

// Tidy prunes every minute until ctx is done. Errors are logged, and retried a minute
// later.
func (s *Store) Tidy(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.tidy(ctx)
		}
	}
}

func (s *Store) tidy(ctx context.Context) {
	if err := s.pruneDeliveries(ctx); err != nil && ctx.Err() == nil && !isUnavailable(err) {
		s.log.ErrorContext(ctx, "pruning the delivery log failed", "error", err)
	}
	if err := s.pruneTips(ctx); err != nil && ctx.Err() == nil && !isUnavailable(err) {
		s.log.ErrorContext(ctx, "pruning tips failed", "error", err)
	}
	if err := s.pruneSessions(ctx); err != nil && ctx.Err() == nil && !isUnavailable(err) {
		s.log.ErrorContext(ctx, "pruning sessions failed", "error", err)
	}
	if err := s.pruneExpirations(ctx); err != nil && ctx.Err() == nil && !isUnavailable(err) {
		s.log.ErrorContext(ctx, "pruning the log of expired evidence failed", "error", err)
	}
}

// Prune deletes rows that are no longer needed: deliveries that finished more than
// Options.KeepDeliveries ago, deleted webhooks with their deliveries, the overlaps of
// tips that are out of flight, expired sessions, and the log of evidence that expired more
// than keepExpirations ago.
func (s *Store) Prune(ctx context.Context) error {
	return errors.Join(s.pruneDeliveries(ctx), s.pruneTips(ctx), s.pruneSessions(ctx), s.pruneExpirations(ctx))
}

func (s *Store) pruneDeliveries(ctx context.Context) error {
	cutoff := s.Now().Add(-s.retention)
	type prunable struct{ old, deleted []int64 }
	webhooks, err := read(ctx, s, forWrite(""), func(rd reader) (p prunable, err error) {
		p.old, err = all(rd, scanID, `
SELECT id FROM webhooks w
WHERE deleted_at = 0 AND EXISTS (SELECT 1 FROM outbox WHERE webhook_id = w.id AND ended_at > 0 AND ended_at < ?)`,
			cutoff)
		if err != nil {
			return p, err
		}
		p.deleted, err = all(rd, scanID, "SELECT id FROM webhooks WHERE deleted_at > 0")
		return p, err
	})
	if err != nil {
		return fmt.Errorf("read prunable rows: %w", err)
	}

	for _, id := range webhooks.old {
		if err := s.repeat(ctx, func(t *tx) (bool, error) {
			return t.prune(id, endedDeliveries, id, cutoff, pruneBatch)
		}); err != nil {
			return fmt.Errorf("prune deliveries: %w", err)
		}
	}

	for _, id := range webhooks.deleted {
		if err := s.repeat(ctx, func(t *tx) (bool, error) { return t.pruneWebhook(id) }); err != nil {
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
func (t *tx) prune(webhook int64, query string, args ...any) (last bool, err error) {
	ids, err := all(t.reader, scanText, query, args...)
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
func (t *tx) pruneWebhook(id int64) (last bool, err error) {
	last, err = t.prune(id, allDeliveries, id, pruneBatch)
	if err == nil && last {
		_, err = t.Exec("DELETE FROM webhooks WHERE id = ?", id)
	}
	return last, err
}

// pruneTipsBatch is the number of tips that one write prunes.
const pruneTipsBatch = 50

// Queries for tips whose overlaps are no longer needed: tips that have ended, and tips
// that are too old.
const (
	doneTips = "SELECT commit_id FROM tips WHERE repo_id = ? AND " + isDone + " LIMIT ?"
	oldTips  = "SELECT commit_id FROM tips WHERE repo_id = ? AND " + isLive +
		" AND opened_at < ? ORDER BY opened_at LIMIT ?"
)

func (s *Store) pruneTips(ctx context.Context) error {
	stale, err := s.reposWith(ctx, "SELECT id FROM repos", func(rd reader, id int64) ([]int64, error) {
		return rd.staleTips(id, 1)
	})
	if err != nil {
		return fmt.Errorf("read prunable rows: %w", err)
	}
	for _, id := range stale {
		if err := s.repeat(ctx, func(t *tx) (bool, error) { return t.pruneTipsOf(id) }); err != nil {
			return fmt.Errorf("prune tips: %w", err)
		}
	}
	return nil
}

func (rd reader) staleTips(repoID int64, limit int) ([]int64, error) {
	r, err := rd.repoByID(repoID)
	if err != nil {
		return nil, err
	}
	contract, err := rd.contract(r)
	if err != nil {
		return nil, err
	}
	done, err := all(rd, scanID, doneTips, repoID, limit)
	if err != nil || len(done) == limit {
		return done, err
	}
	old, err := all(rd, scanID, oldTips, repoID, contract.Radar.Oldest(rd.now), limit-len(done))
	return append(done, old...), err
}

func (t *tx) pruneTipsOf(repoID int64) (last bool, err error) {
	tips, err := t.staleTips(repoID, pruneTipsBatch)
	if err != nil {
		return false, err
	}
	for _, id := range tips {
		if err := t.clearOverlaps(id); err != nil {
			return false, err
		}
		_, err := t.Exec("UPDATE tips SET flight = ?, "+renumber+" WHERE commit_id = ?", radarindex.Forgotten, id)
		if err != nil {
			return false, err
		}
	}
	return len(tips) < pruneTipsBatch, nil
}

// keepExpirations is how long the log of expired evidence is retained. The states that a
// wrong clock has changed are derived again if it is put right within this time.
const keepExpirations = 90 * 24 * time.Hour

// pruneExpirations deletes old rows of the log of expired evidence.
func (s *Store) pruneExpirations(ctx context.Context) error {
	cutoff := s.Now().Add(-keepExpirations)
	old, err := readLoose(ctx, s, forWrite(""), func(rd reader) (old bool, err error) {
		return old, rd.Row("SELECT EXISTS (SELECT 1 FROM expirations WHERE at < ?)", cutoff).Scan(&old)
	})
	if err != nil || !old {
		return err
	}
	return s.repeat(ctx, func(t *tx) (bool, error) {
		n, err := t.Exec(`
DELETE FROM expirations
WHERE (at, commit_id) IN (SELECT at, commit_id FROM expirations WHERE at < ? ORDER BY at LIMIT ?)`, cutoff, pruneBatch)
		return n < pruneBatch, err
	})
}
