package overlaps

import (
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// OverlapsPage is the number of later tips whose overlaps one read examines.
const OverlapsPage = overlapsPage

// PreviewSlots limits the concurrent previews, and LimitPreviews the time of each.
func (ra *Radar) PreviewSlots() chan struct{}       { return ra.previewSlots }
func (ra *Radar) LimitPreviews(limit time.Duration) { ra.maxPreview = limit }

// KeepsFootprint reports whether a footprint is cached that a failed write has left.
func (ra *Radar) KeepsFootprint(ctx context.Context) (kept bool, err error) {
	failed := errors.New("failed")
	tip := radarindex.Tip{CommitID: 9, Seq: 4}
	err = ra.db.Change(ctx, "", func(*txn.Tx) error {
		ra.recent.Add(tip, radar.New(nil).Footprint(nil))
		return failed
	})
	if !errors.Is(err, failed) {
		return false, err
	}
	err = ra.db.Change(ctx, "", func(*txn.Tx) error {
		kept = ra.recent.Footprint(&tip, 0) != nil
		return nil
	})
	return kept, err
}

// CountClosed counts the overlaps whose earlier tip is not live.
func (ra *Radar) CountClosed(ctx context.Context) (n int, err error) {
	return txn.Read(ctx, ra.db, txn.ForWrite(""), func(rd txn.Reader) (n int, err error) {
		return n, rd.Row("SELECT count(*) FROM overlaps o JOIN tips e ON e.commit_id = o.earlier WHERE NOT e." +
			facts.IsLive).
			Scan(&n)
	})
}
