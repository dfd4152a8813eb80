package overlaps

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// tipSource reads tips from the database for the radar's indexes. Each method uses its own
// read transaction. It implements radarindex.Source.
type tipSource struct{ ra *Radar }

// Queries for the live tips of a repo, and for its tips with a greater seq. The queries for
// records also read the change record of a live tip.
const (
	liveTips     = "SELECT " + facts.TipColumns + " FROM tips t WHERE t.repo_id = ? AND t." + facts.IsLive
	newerTips    = "SELECT " + facts.TipColumns + " FROM tips t WHERE t.repo_id = ? AND t.seq > ? ORDER BY t.seq"
	liveRecords  = withRecord + "t." + facts.IsLive + " ORDER BY t.opened_at DESC"
	newerRecords = withRecord + "t.seq > ? ORDER BY t.seq"

	withRecord = "SELECT " + facts.TipColumns + ", CASE WHEN t." + facts.IsLive + " THEN d.changes END " +
		"FROM tips t LEFT JOIN commit_details d ON d.commit_id = t.commit_id WHERE t.repo_id = ? AND "
)

// A visitTip is the function that a radarindex.Source calls for each tip.
type visitTip = func(radarindex.Tip, []radar.Change) error

// Since implements radarindex.Source.
func (t tipSource) Since(ctx context.Context, repoID, seq int64, visit visitTip) error {
	_, err := txn.Read(ctx, t.ra.db, txn.ForWrite(""), func(rd txn.Reader) (struct{}, error) {
		return struct{}{}, TipReader{rd}.Since(ctx, repoID, seq, visit)
	})
	return err
}

// Live implements radarindex.Source.
func (t tipSource) Live(ctx context.Context, repoID int64, visit visitTip) (int64, error) {
	return txn.Read(ctx, t.ra.db, txn.ForWrite(""), func(rd txn.Reader) (int64, error) {
		return TipReader{rd}.Live(ctx, repoID, visit)
	})
}

// A TipReader is like a tipSource, within one read transaction.
type TipReader struct{ txn.Reader }

// Since implements radarindex.Source.
func (t TipReader) Since(_ context.Context, repoID, seq int64, visit visitTip) error {
	return eachTip(t.Reader, visit, newerRecords, repoID, seq)
}

// Live implements radarindex.Source.
func (t TipReader) Live(_ context.Context, repoID int64, visit visitTip) (last int64, err error) {
	if err := t.Row("SELECT coalesce(max(seq), 0) FROM tips WHERE repo_id = ?", repoID).Scan(&last); err != nil {
		return last, err
	}
	return last, eachTip(t.Reader, visit, liveRecords, repoID)
}

// eachTip calls visit for each tip of a query, with its changes. The query selects the
// TipColumns and the changes.
func eachTip(rd txn.Reader, visit visitTip, query string, args ...any) error {
	return rd.Each(func(row txn.Scanner) error {
		var text []byte
		tip, err := facts.ScanTipAnd(row, &text)
		if err != nil {
			return err
		}
		changes, err := facts.DecodeChanges(text)
		if err != nil {
			return fmt.Errorf("read changes of %s: %w", tip.SHA, err)
		}
		return visit(tip, changes)
	}, query, args...)
}

// FreshIndex returns the refreshed index of a repo's tips.
func (ra *Radar) FreshIndex(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	return ra.tips.Fresh(ctx, repoID, ra.Source())
}

// RadarSize returns how many bytes the indexes have, approximately, and the limit.
func (ra *Radar) RadarSize() (bytes, limit int64) { return ra.tips.Size() }

// Source returns the source of the indexes: the tips in the database.
func (ra *Radar) Source() radarindex.Source { return tipSource{ra} }
