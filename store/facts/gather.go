package facts

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Gather reads the facts of commits. The list must not contain duplicates.
func (fa *Facts) Gather(rd txn.Reader, list []*Commit) error {
	return fa.gather(rd, list, func(ids []any) func() ([]Latest, error) { return AskLatest(rd, ids...) })
}

// gather is Gather. askLatest is AskLatest.
func (fa *Facts) gather(rd txn.Reader, list []*Commit, askLatest func(ids []any) func() ([]Latest, error)) error {
	byID := make(map[int64]*Commit, len(list))
	var attested, blockable, changing []any
	var judged []*Commit
	for _, s := range list {
		byID[s.ID] = s
		known, err := s.Known()
		if err != nil {
			return err
		}
		s.Facts = s.Deriver.factsOf(&known)
		s.Facts.RegisteredAt = s.registeredAt
		s.Facts.Attested, s.Facts.Deployed = s.Attestations > 0, s.State == ledger.Deployed
		if s.Attestations > 0 {
			attested = append(attested, s.ID)
		}
		if s.Deriver.Contract.Radar.Blocks() {
			blockable = append(blockable, s.ID)
		}
		if s.Deriver.Contract.NeedsChanges() {
			changing = append(changing, s.ID)
		}
		s.rows, s.Unevaluated = nil, nil
		if s.Deriver.Contract.NeedsVerdicts() {
			s.rows = []int64{}
			judged = append(judged, s)
		}
	}

	if err := fa.gatherEvidence(rd, byID, askLatest(attested)); err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	if err := fa.gatherCarried(rd, list); err != nil {
		return fmt.Errorf("read carried evidence: %w", err)
	}
	if err := fa.gatherVerdicts(rd, judged); err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	if err := fa.gatherExceptions(rd, list); err != nil {
		return err
	}
	if err := GatherOverlaps(rd, byID, blockable); err != nil {
		return fmt.Errorf("read overlaps: %w", err)
	}
	if err := fa.gatherChanges(rd, byID, changing); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	if err := GatherAuthors(rd, list); err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}

// GatherOne is like Gather, for one commit.
func (fa *Facts) GatherOne(rd txn.Reader, d *Deriver, c *CommitRow) (*Commit, error) {
	s := &Commit{CommitRow: c, Deriver: d}
	return s, fa.Gather(rd, []*Commit{s})
}

// GatherAsked is like GatherOne, with the answer of AskLatest.
func (fa *Facts) GatherAsked(
	rd txn.Reader, d *Deriver, c *CommitRow, latest func() ([]Latest, error),
) (*Commit, error) {
	s := &Commit{CommitRow: c, Deriver: d}
	return s, fa.gather(rd, []*Commit{s}, func([]any) func() ([]Latest, error) { return latest })
}

const selectBlocking = `
SELECT o.later, o.level, e.sha, e.branch, o.path, o.reason, l.opened_at, e.opened_at
FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
WHERE (l.` + IsInFlight + ` OR l.` + isDeployed + `) AND e.` + IsLive + ` AND e.place < l.place AND o.later IN `

// GatherOverlaps reads the overlaps that may block commits from PROMOTABLE. The
// derivation ignores overlaps that are too old.
func GatherOverlaps(rd txn.Reader, byID map[int64]*Commit, ids []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var commitID int64
		var o policy.OpenOverlap
		var later, earlier ledger.Time // when the commits came into flight
		err := row.Scan(&commitID, &o.Level, &o.Commit, &o.Branch, &o.Path, &o.Reason, &later, &earlier)
		if err != nil {
			return err
		}
		s := byID[commitID]
		if radar := s.Deriver.Contract.Radar; o.Level >= radar.Block {
			o.Until = min(later, earlier).Add(time.Duration(radar.MaxAge))
			s.Facts.Overlaps = append(s.Facts.Overlaps, o)
		}
		return nil
	}, selectBlocking, 1, ids)
}
