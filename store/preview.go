package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// maxPreviews is the maximum number of concurrent calls of PreviewOverlaps. A call can cost
// as much as a registration, but needs only read access.
const maxPreviews = 2

// maxPreview is the maximum time that a call of PreviewOverlaps waits and runs. Most of it
// is for the first call in a large repo, which may have to build the radar's index.
const maxPreview = 30 * time.Second

// errSlowPreview is the cause of a context that ends at this limit.
var errSlowPreview = errors.New("the preview took too long")

// maxScans is the maximum number of scans in one call of PreviewOverlaps, which scans again
// if tips change during a scan.
const maxScans = 5

// PreviewOverlaps returns the overlaps that a commit would have if it were registered now.
// It is a dry run: it writes nothing. It waits if too many calls are running.
func (s *Store) PreviewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (ledger.RadarResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxPreview, errSlowPreview)
	defer cancel()
	result, err := s.previewOverlaps(ctx, org, repo, q)
	if err != nil && context.Cause(ctx) == errSlowPreview { //nolint:errorlint // a cause is not wrapped
		err = ledger.Errorf(ledger.CodeStorageUnavailable, "%v and was stopped (try again later)", errSlowPreview)
	}
	return result, err
}

func (s *Store) previewOverlaps(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (result ledger.RadarResult, err error) {
	select {
	case s.previewSlots <- struct{}{}:
		defer func() { <-s.previewSlots }()
	case <-ctx.Done():
		return result, ctx.Err()
	case <-s.closing:
		return result, sqldb.ErrClosed
	}

	result.Overlaps = []ledger.RadarPair{}
	sub, err := submit(q.Commit, q.Registration)
	if err != nil {
		return result, err
	}
	q.Registration = sub.Registration
	p, err := s.prospect(ctx, org, repo, q.Commit, q.Registration)
	if err != nil {
		return result, err
	}

	var sc *prospectScan
	for range maxScans { // until no tip changes during a scan
		if sc, err = s.scanProspect(ctx, p); err != nil || sc == nil {
			return result, err
		}
		if sc.Seq == sc.Index().Seq() {
			break
		}
	}

	return read(ctx, s, txn.ByOrg(org), func(rd reader) (ledger.RadarResult, error) {
		own := ledger.RadarCommit{SHA: q.Commit}
		if p.commit != nil {
			stored, err := scanSide(rd.Row(selectSide+"= ?", p.commit.id))
			if err != nil {
				return ledger.RadarResult{}, fmt.Errorf("read commit: %w", err)
			}
			own = stored.Row.RadarCommit
		}

		own.Branch, own.Subject = p.registration.Branch, cmp.Or(ledger.Subject(q.Message), own.Subject)
		own.Author = ledger.Author{
			Name: cmp.Or(q.Author.Name, own.Author.Name), Email: cmp.Or(q.Author.Email, own.Author.Email),
		}
		preview := tipResult{place: p.tip.Place, overlaps: overlapsOf(sc.Matches), more: sc.More}
		return rd.result(preview, own, radar.MaxPairs)
	})
}
