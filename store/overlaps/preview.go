package overlaps

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// errSlowPreview is the cause of a context that ends at this limit.
var errSlowPreview = errors.New("the preview took too long")

// maxScans is the maximum number of scans in one call of PreviewOverlaps, which scans again
// if tips change during a scan.
const maxScans = 5

// PreviewOverlaps returns the overlaps that a commit would have if it were registered now.
// It is a dry run: it writes nothing. It waits if too many calls are running.
func (ra *Radar) PreviewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (ledger.RadarResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ra.maxPreview, errSlowPreview)
	defer cancel()
	result, err := ra.previewOverlaps(ctx, org, repo, q)
	if err != nil && context.Cause(ctx) == errSlowPreview { //nolint:errorlint // a cause is not wrapped
		err = ledger.Errorf(ledger.CodeStorageUnavailable, "%v and was stopped (try again later)", errSlowPreview)
	}
	return result, err
}

func (ra *Radar) previewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (result ledger.RadarResult, err error) {
	select {
	case ra.previewSlots <- struct{}{}:
		defer func() { <-ra.previewSlots }()
	case <-ctx.Done():
		return result, ctx.Err()
	case <-ra.closing:
		return result, sqldb.ErrClosed
	}

	result.Overlaps = []ledger.RadarPair{}
	sub, err := Submit(q.Commit, q.Registration)
	if err != nil {
		return result, err
	}
	q.Registration = sub.Registration
	p, err := ra.Prospect(ctx, org, repo, q.Commit, q.Registration)
	if err != nil {
		return result, err
	}

	var sc *ProspectScan
	for range maxScans { // until no tip changes during a scan
		if sc, err = ra.ScanProspect(ctx, p); err != nil || sc == nil {
			return result, err
		}
		if sc.Seq == sc.Index().Seq() {
			break
		}
	}

	return txn.Read(ctx, ra.db, txn.ByOrg(org), func(rd txn.Reader) (ledger.RadarResult, error) {
		own := ledger.RadarCommit{SHA: q.Commit}
		if p.commit != nil {
			stored, err := scanSide(rd.Row(selectSide+"= ?", p.commit.ID))
			if err != nil {
				return ledger.RadarResult{}, fmt.Errorf("read commit: %w", err)
			}
			own = stored.Row.RadarCommit
		}

		own.Branch, own.Subject = p.registration.Branch, cmp.Or(ledger.Subject(q.Message), own.Subject)
		own.Author = ledger.Author{
			Name: cmp.Or(q.Author.Name, own.Author.Name), Email: cmp.Or(q.Author.Email, own.Author.Email),
		}
		preview := TipResult{place: p.Tip.Place, Overlaps: overlapsOf(sc.Matches), More: sc.More}
		return Result(rd, preview, own, radar.MaxPairs)
	})
}
