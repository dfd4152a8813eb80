package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// maxForeseeing is the maximum number of concurrent Foresee calls. A call may cost
// as much as a registration, but needs only read access.
const maxForeseeing = 2

// maxLooks is the maximum number of scans of Foresee while tips keep changing.
const maxLooks = 5

// Foresee reports what a commit would overlap with if it were registered now. It
// writes nothing. If other calls are under way, it waits for its turn.
func (s *Store) Foresee(
	ctx context.Context, org, repo string, q ledger.RadarQuery,
) (result ledger.RadarResult, err error) {
	select {
	case s.foreseeing <- struct{}{}:
		defer func() { <-s.foreseeing }()
	case <-ctx.Done():
		return result, ctx.Err()
	case <-s.closing:
		return result, sqldb.ErrClosed
	}
	result.Overlaps = []ledger.RadarPair{}
	p, err := s.prospect(ctx, org, repo, q.Commit, q.Registration)
	if err != nil {
		return result, err
	}
	var l *look
	for range maxLooks { // until no tip changes during a scan
		if l, err = s.lookAhead(ctx, p); err != nil || l == nil {
			return result, err
		}
		if l.Seq == l.Index().Seq() {
			break
		}
	}
	return read(ctx, s, func(rd reader) (ledger.RadarResult, error) {
		own := ledger.RadarCommit{SHA: q.Commit}
		if p.commit != nil {
			known, err := scanSide(rd.Row(selectSide+"= ?", p.commit.id))
			if err != nil {
				return ledger.RadarResult{}, fmt.Errorf("read commit: %w", err)
			}
			own = known.row.RadarCommit
		}
		own.Branch, own.Subject = p.registration.Branch, cmp.Or(ledger.Subject(q.Message), own.Subject)
		own.Author = ledger.Author{
			Name: cmp.Or(q.Author.Name, own.Author.Name), Email: cmp.Or(q.Author.Email, own.Author.Email),
		}
		foreseen := tipResult{place: p.tip.Place, found: foundOf(l.Matches), more: l.More}
		return rd.result(foreseen, own, radar.MaxPairs)
	})
}
