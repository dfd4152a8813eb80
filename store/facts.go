package store

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// gather reads the facts of commits. The list must not contain duplicates.
func (rd reader) gather(list []*subject) error {
	byID := make(map[int64]*subject, len(list))
	var attested, blockable, changing []any
	var judged []*subject
	for _, s := range list {
		byID[s.id] = s
		known, err := s.known()
		if err != nil {
			return err
		}
		s.facts = s.d.factsOf(&known)
		s.facts.RegisteredAt = s.registeredAt
		s.facts.Attested, s.facts.Deployed = s.attestations > 0, s.state == ledger.Deployed
		if s.attestations > 0 {
			attested = append(attested, s.id)
		}
		if s.d.contract.Radar.Blocks() {
			blockable = append(blockable, s.id)
		}
		if s.d.contract.NeedsChanges() {
			changing = append(changing, s.id)
		}
		s.rows, s.unevaluated = nil, nil
		if s.d.contract.NeedsVerdicts() {
			s.rows = []int64{}
			judged = append(judged, s)
		}
	}

	if err := rd.gatherEvidence(byID, attested); err != nil {
		return fmt.Errorf("read evidence: %w", err)
	}
	if err := rd.gatherCarried(list); err != nil {
		return fmt.Errorf("read carried evidence: %w", err)
	}
	if err := rd.gatherVerdicts(judged); err != nil {
		return fmt.Errorf("read verdicts: %w", err)
	}
	if err := rd.gatherExceptions(list); err != nil {
		return err
	}
	if err := rd.gatherOverlaps(byID, blockable); err != nil {
		return fmt.Errorf("read overlaps: %w", err)
	}
	if err := rd.gatherChanges(byID, changing); err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	if err := rd.gatherAuthors(list); err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}

// gatherOne is like gather, for one commit.
func (rd reader) gatherOne(d *deriver, c *commitRow) (*subject, error) {
	s := &subject{commitRow: c, d: d}
	return s, rd.gather([]*subject{s})
}

const selectBlocking = `
SELECT o.later, o.level, e.sha, e.branch, o.path, o.reason, l.opened_at, e.opened_at
FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
WHERE (l.` + isInFlight + ` OR l.` + isDeployed + `) AND e.` + isLive + ` AND e.place < l.place AND o.later IN `

// gatherOverlaps reads the overlaps that may block commits from PROMOTABLE. The
// derivation ignores overlaps that are too old.
func (rd reader) gatherOverlaps(byID map[int64]*subject, ids []any) error {
	return rd.EachIn(func(row txn.Scanner) error {
		var commitID int64
		var o policy.OpenOverlap
		var later, earlier ledger.Time // when the commits came into flight
		err := row.Scan(&commitID, &o.Level, &o.Commit, &o.Branch, &o.Path, &o.Reason, &later, &earlier)
		if err != nil {
			return err
		}
		s := byID[commitID]
		if radar := s.d.contract.Radar; o.Level >= radar.Block {
			o.Until = min(later, earlier).Add(time.Duration(radar.MaxAge))
			s.facts.Overlaps = append(s.facts.Overlaps, o)
		}
		return nil
	}, selectBlocking, 1, ids)
}
