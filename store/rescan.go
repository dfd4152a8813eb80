package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/store/radarindex"
)

// rescanMarked has the radar re-scan the tips in flight that are marked for it.
func (s *Store) rescanMarked(ctx context.Context) error {
	repos, err := s.reposWith(ctx, reposMarked, func(rd reader, id int64) ([]int64, error) {
		tips, _, err := rd.markedTips(id)
		return tips, err
	})
	errs := []error{err}
	for _, id := range repos {
		if err := s.repeatScans(ctx, id, func(t *tx) (bool, error) { return t.rescanBatch(id) }); err != nil {
			errs = append(errs, fmt.Errorf("repo %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// repeatScans runs batch, in which the radar scans tips, until it reports that it was the last. It
// refreshes the index before each batch, so that the writer does not have to.
func (s *Store) repeatScans(ctx context.Context, repoID int64, batch func(*tx) (last bool, err error)) error {
	for {
		last, err := s.scanOnce(ctx, repoID, batch)
		if err != nil || last {
			return err
		}
	}
}

// scanOnce runs a batch in which the radar scans tips, with a refreshed index.
func (s *Store) scanOnce(ctx context.Context, repoID int64, batch func(*tx) (bool, error)) (last bool, err error) {
	index, err := s.enabledIndex(ctx, repoID)
	if err != nil {
		return false, err
	}
	return writeOfRepo(ctx, s, repoID, func(t *tx) (bool, error) {
		t.index = index
		return batch(t)
	})
}

// enabledIndex returns the refreshed index of a repo, or nil if its radar is disabled.
func (s *Store) enabledIndex(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	enabled, err := read(ctx, s, forWrite(""), func(rd reader) (bool, error) {
		r, err := rd.repoByID(repoID)
		if err != nil {
			return false, err
		}
		contract, err := rd.contract(r)
		if err != nil {
			return false, err
		}
		return contract.Radar.Enabled, nil
	})
	if err != nil || !enabled {
		return nil, err
	}
	return s.tips.Fresh(ctx, repoID, tipSource{s})
}

// Queries for the tips marked for a re-scan: their policy_version is 0.
const (
	reposMarked  = "SELECT DISTINCT repo_id FROM tips WHERE policy_version = 0 AND " + isInFlight
	selectMarked = "SELECT commit_id FROM tips WHERE repo_id = ? AND policy_version = 0 AND " + isInFlight +
		" AND opened_at >= ? LIMIT ?"
)

// markedTips returns the next batch of a repo's tips to re-scan, and the repo's deriver.
func (rd reader) markedTips(repoID int64) ([]int64, *deriver, error) {
	d, err := rd.deriverByID(repoID)
	if err != nil || !d.contract.Radar.Enabled {
		return nil, d, err
	}
	tips, err := all(rd, scanID, selectMarked, repoID, d.contract.Radar.Oldest(rd.now), rescanBatchSize)
	return tips, d, err
}

// rescanBatch re-scans the next batch of a repo's marked tips.
func (t *tx) rescanBatch(repoID int64) (last bool, err error) {
	tips, d, err := t.markedTips(repoID)
	if err != nil {
		return false, err
	}

	t.evaluating = true
	for _, id := range tips {
		c, err := t.findCommitRow(id)
		if err != nil {
			return false, err
		}
		result, err := t.rescan(d, id)
		if err != nil {
			return false, err
		}
		cause, err := t.cause(c, result)
		if err != nil {
			return false, err
		}
		t.work.add(id, workEntry{cause: cause, reached: true})
	}
	return len(tips) < rescanBatchSize, t.drain(d)
}

// rescanBatchSize is the number of commits that one write re-scans. Each costs as much as
// a registration.
const rescanBatchSize = 20

// rescan re-scans a tip that is in flight and marked for a re-scan.
func (t *tx) rescan(d *deriver, commitID int64) (result tipResult, err error) {
	tip, ok, err := t.findTip(commitID)
	if err != nil || !ok || !tip.InFlightAt(d.contract.Radar, t.now) || tip.PolicyVersion != 0 {
		return result, err
	}
	n, err := t.registrationOf(commitID)
	if err != nil {
		return result, err
	}
	return t.scanOverlaps(d, tip, n, nil)
}
