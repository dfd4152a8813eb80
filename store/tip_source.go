package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// tipSource reads tips from the database for the radar's indexes. Each method uses its own
// read transaction. It implements radarindex.Source.
type tipSource struct{ store *Store }

// Queries for the live tips of a repo, and for its tips with a greater seq. The queries for
// records also read the change record of a live tip.
const (
	liveTips     = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t." + isLive
	newerTips    = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.seq > ? ORDER BY t.seq"
	liveRecords  = withRecord + "t." + isLive + " ORDER BY t.opened_at DESC"
	newerRecords = withRecord + "t.seq > ? ORDER BY t.seq"

	withRecord = "SELECT " + tipColumns + ", CASE WHEN t." + isLive + " THEN d.changes END " +
		"FROM tips t LEFT JOIN commit_details d ON d.commit_id = t.commit_id WHERE t.repo_id = ? AND "
)

// A visitTip is the function that a radarindex.Source calls for each tip.
type visitTip = func(radarindex.Tip, []radar.Change) error

// Since implements radarindex.Source.
func (t tipSource) Since(ctx context.Context, repoID, seq int64, visit visitTip) error {
	_, err := read(ctx, t.store, txn.ForWrite(""), func(rd reader) (struct{}, error) {
		return struct{}{}, tipReader{rd}.Since(ctx, repoID, seq, visit)
	})
	return err
}

// Live implements radarindex.Source.
func (t tipSource) Live(ctx context.Context, repoID int64, visit visitTip) (int64, error) {
	return read(ctx, t.store, txn.ForWrite(""), func(rd reader) (int64, error) {
		return tipReader{rd}.Live(ctx, repoID, visit)
	})
}

// A tipReader is like a tipSource, within one read transaction.
type tipReader struct{ reader }

// Since implements radarindex.Source.
func (t tipReader) Since(_ context.Context, repoID, seq int64, visit visitTip) error {
	return t.eachTip(visit, newerRecords, repoID, seq)
}

// Live implements radarindex.Source.
func (t tipReader) Live(_ context.Context, repoID int64, visit visitTip) (last int64, err error) {
	if err := t.Row("SELECT coalesce(max(seq), 0) FROM tips WHERE repo_id = ?", repoID).Scan(&last); err != nil {
		return last, err
	}
	return last, t.eachTip(visit, liveRecords, repoID)
}

// eachTip calls visit for each tip of a query, with its changes. The query selects the
// tipColumns and the changes.
func (rd reader) eachTip(visit visitTip, query string, args ...any) error {
	return rd.Each(func(row txn.Scanner) error {
		var text []byte
		tip, err := scanTipAnd(row, &text)
		if err != nil {
			return err
		}
		changes, err := decodeChanges(text)
		if err != nil {
			return fmt.Errorf("read changes of %s: %w", tip.SHA, err)
		}
		return visit(tip, changes)
	}, query, args...)
}

// freshIndex returns the refreshed index of a repo's tips.
func (s *Store) freshIndex(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	return s.tips.Fresh(ctx, repoID, tipSource{s})
}

// RadarSize returns how many bytes the indexes have, approximately, and the limit.
func (s *Store) RadarSize() (bytes, limit int64) { return s.tips.Size() }
