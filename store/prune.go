package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// pruneInterval is how often Tidy prunes, and how often a repo is pruned at most.
const pruneInterval = time.Minute

// Tidy prunes every minute until ctx is done. Errors are logged, and retried a minute
// later. It looks for closed overlaps in one page of the tips each time. At the start and
// every minute, it also encrypts the signing secrets that are not encrypted with the first
// of Options.SecretKeys.
func (s *Store) Tidy(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	s.TidySecrets(ctx, true)
	var page int64 // position of the next page
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			page = s.tidy(ctx, page)
		}
	}
}

func (s *Store) tidy(ctx context.Context, page int64) (next int64) {
	s.TidySecrets(ctx, false)
	if s.CheckClock() != nil { // by another one, it may be too early
		return page
	}
	for _, p := range s.pruners() {
		if err := p.prune(ctx); err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
			s.db.Log.ErrorContext(ctx, "pruning "+p.what+" failed", "error", err)
		}
	}

	next, err := s.pruneClosedOverlaps(ctx, page)
	if err != nil && ctx.Err() == nil && !txn.IsUnavailable(err) {
		s.db.Log.ErrorContext(ctx, "pruning overlaps failed", "error", err)
	}
	return next
}

// Prune deletes what is no longer needed: deliveries that finished more than
// Options.KeepDeliveries ago, or as long as their repo keeps them, deleted webhooks with their
// deliveries, the overlaps of tips that are out of flight, and expired sessions, exchanged tokens, used tokens, drafts
// and sign-ins.
// While the clock is wrong, it deletes nothing.
func (s *Store) Prune(ctx context.Context) error {
	if s.CheckClock() != nil {
		return nil
	}
	var errs []error
	for _, p := range s.pruners() {
		errs = append(errs, p.prune(ctx))
	}
	for page, more := int64(0), true; more; more = page != 0 {
		var err error
		if page, err = s.pruneClosedOverlaps(ctx, page); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(errs...)
}

// A pruner prunes something.
type pruner struct {
	what  string
	prune func(context.Context) error
}

// pruners returns what is pruned as a whole each time.
func (s *Store) pruners() []pruner {
	return []pruner{
		{"the delivery log", s.Outbox.PruneDeliveries},
		{"tips", s.pruneTips},
		{"sessions", s.PruneSessions},
		{"drafts of reviews", s.PruneDrafts}, // before sign-ins, which they name
		{"challenges of passkeys", s.PrunePasskeyChallenges},
		{"exchanged tokens", s.PruneExchanged},
		{"used tokens", s.PruneUsed},
		{"sign-ins", s.PruneSignIns}, // after their sessions and drafts
	}
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
		owners, err := s.ownersOfRepo(ctx, id)
		if err != nil {
			return err
		}
		if err := s.repeatFor(ctx, owners, func(t *tx) (bool, error) { return t.pruneTipsOf(id) }); err != nil {
			return fmt.Errorf("prune tips: %w", err)
		}
	}
	return nil
}

func (rd reader) staleTips(repoID int64, limit int) ([]int64, error) {
	r, err := rd.RepoByID(repoID)
	if err != nil {
		return nil, err
	}
	contract, err := rd.s.Contracts.Contract(rd.Reader, r)
	if err != nil {
		return nil, err
	}
	done, err := all(rd, txn.ScanID, doneTips, repoID, limit)
	if err != nil || len(done) == limit {
		return done, err
	}
	old, err := all(rd, txn.ScanID, oldTips, repoID, contract.Radar.Oldest(rd.Now), limit-len(done))
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

const (
	// overlapsPage is the number of later tips whose overlaps one read examines. Most
	// tips have at most 200 overlaps with earlier ones.
	overlapsPage = 200
	// pruneOverlapsBatch is the number of later tips whose closed overlaps one write
	// deletes.
	pruneOverlapsBatch = 20
)

// isClosedForGood is the condition that an overlap o of the later tip l and the earlier
// tip e never opens again: e was superseded, withdrawn or forgotten, or it was registered
// again after l. If l is registered again, its overlaps are replaced.
const isClosedForGood = "(NOT e." + isLive + " OR e.place > l.place)"

// pruneClosedOverlaps deletes the overlaps that are closed for good, of one page of the
// later tips. pruneTips only deletes the overlaps of tips as the later ones: there is no
// index by the earlier ones. It returns the position of the next page, or 0 after the
// last one.
func (s *Store) pruneClosedOverlaps(ctx context.Context, page int64) (next int64, err error) {
	type tipPairs struct{ later, closed int64 }
	tips, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]tipPairs, error) {
		return all(rd, func(row txn.Scanner) (p tipPairs, err error) {
			return p, row.Scan(&p.later, &p.closed)
		}, `
SELECT o.later, count(*) FILTER (WHERE `+isClosedForGood+`)
FROM overlaps o /*+ordered*/ JOIN tips l ON l.commit_id = o.later /*+ordered*/ JOIN tips e ON e.commit_id = o.earlier
WHERE o.later > ? GROUP BY o.later ORDER BY o.later LIMIT ?`, page, overlapsPage)
	})
	if err != nil {
		return page, fmt.Errorf("read prunable overlaps: %w", err)
	}
	if len(tips) == overlapsPage {
		next = tips[overlapsPage-1].later
	}

	var prunable []int64
	for _, p := range tips {
		if p.closed > 0 {
			prunable = append(prunable, p.later)
		}
	}
	for batch := range slices.Chunk(prunable, pruneOverlapsBatch) {
		if err := s.write(ctx, "", func(t *tx) error { return t.deleteClosedOverlaps(batch) }); err != nil {
			return page, fmt.Errorf("prune overlaps: %w", err)
		}
	}
	return next, nil
}

// deleteClosedOverlaps deletes the overlaps of these later tips that are closed for good.
// It checks them again, because the tips may have changed since they were read.
func (t *tx) deleteClosedOverlaps(later []int64) error {
	for _, id := range later {
		_, err := t.Exec(`
DELETE FROM overlaps WHERE later = ?1 AND earlier IN (
  SELECT o.earlier FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
  WHERE o.later = ?1 AND `+isClosedForGood+`)`, id)
		if err != nil {
			return err
		}
	}
	return nil
}
