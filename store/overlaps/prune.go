package overlaps

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// pruneTipsBatch is the number of tips that one write prunes.
const pruneTipsBatch = 50

// Queries for tips whose overlaps are no longer needed: tips that have ended, and tips
// that are too old.
const (
	doneTips = "SELECT commit_id FROM tips WHERE repo_id = ? AND " + facts.IsDone + " LIMIT ?"
	oldTips  = "SELECT commit_id FROM tips WHERE repo_id = ? AND " + facts.IsLive +
		" AND opened_at < ? ORDER BY opened_at LIMIT ?"
)

// PruneTips ends tips that are out of flight or too old, and deletes their overlaps.
func (ra *Radar) PruneTips(ctx context.Context) error {
	stale, err := ra.facts.ReposWith(ctx, "SELECT id FROM repos", func(rd txn.Reader, id int64) ([]int64, error) {
		return ra.staleTips(rd, id, 1)
	})
	if err != nil {
		return fmt.Errorf("read prunable rows: %w", err)
	}
	for _, id := range stale {
		owners, err := ra.db.OwnersOfRepo(ctx, id)
		if err != nil {
			return err
		}
		w := sqldb.Write{Owners: owners}
		err = ra.db.Repeat(ctx, w, func(t *txn.Tx) (bool, error) { return ra.pruneTipsOf(t, id) })
		if err != nil {
			return fmt.Errorf("prune tips: %w", err)
		}
	}
	return nil
}

func (ra *Radar) staleTips(rd txn.Reader, repoID int64, limit int) ([]int64, error) {
	r, err := rd.RepoByID(repoID)
	if err != nil {
		return nil, err
	}
	contract, err := ra.policies.Contract(rd, r)
	if err != nil {
		return nil, err
	}
	done, err := txn.All(rd, txn.ScanID, doneTips, repoID, limit)
	if err != nil || len(done) == limit {
		return done, err
	}
	old, err := txn.All(rd, txn.ScanID, oldTips, repoID, contract.Radar.Oldest(rd.Now), limit-len(done))
	return append(done, old...), err
}

func (ra *Radar) pruneTipsOf(t *txn.Tx, repoID int64) (last bool, err error) {
	tips, err := ra.staleTips(t.Reader, repoID, pruneTipsBatch)
	if err != nil {
		return false, err
	}
	for _, id := range tips {
		if err := clearOverlaps(t, id); err != nil {
			return false, err
		}
		_, err := t.Exec("UPDATE tips SET flight = ?, "+facts.Renumber+" WHERE commit_id = ?", radarindex.Forgotten, id)
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
const isClosedForGood = "(NOT e." + facts.IsLive + " OR e.place > l.place)"

// PruneClosedOverlaps deletes the overlaps that are closed for good, of one page of the
// later tips. PruneTips only deletes the overlaps of tips as the later ones: there is no
// index by the earlier ones. It returns the position of the next page, or 0 after the
// last one.
func (ra *Radar) PruneClosedOverlaps(ctx context.Context, page int64) (next int64, err error) {
	type tipPairs struct{ later, closed int64 }
	tips, err := txn.ReadLoose(ctx, ra.db, txn.ForWrite(""), func(rd txn.Reader) ([]tipPairs, error) {
		return txn.All(rd, func(row txn.Scanner) (p tipPairs, err error) {
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
		err := ra.db.Change(ctx, "", func(t *txn.Tx) error { return deleteClosedOverlaps(t, batch) })
		if err != nil {
			return page, fmt.Errorf("prune overlaps: %w", err)
		}
	}
	return next, nil
}

// deleteClosedOverlaps deletes the overlaps of these later tips that are closed for good.
// It checks them again, because the tips may have changed since they were read.
func deleteClosedOverlaps(t *txn.Tx, later []int64) error {
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
