package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/store/radarindex"
)

// lookAgain has the radar re-scan the tips in flight that have new facts.
func (s *Store) lookAgain(ctx context.Context) error {
	repos, err := s.reposWith(ctx, reposUnseen, func(rd reader, id int64) ([]int64, error) {
		tips, _, err := rd.unseenTips(id)
		return tips, err
	})
	errs := []error{err}
	for _, id := range repos {
		if err := s.repeatLooking(ctx, id, func(t *tx) (bool, error) { return t.lookAtUnseen(id) }); err != nil {
			errs = append(errs, fmt.Errorf("repo %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// repeatLooking is repeat for batches in which the radar looks at tips. It
// refreshes the index before each batch, to leave little of that to the writer.
func (s *Store) repeatLooking(ctx context.Context, repoID int64, batch func(*tx) (last bool, err error)) error {
	for last := false; !last; {
		index, err := s.indexIfOn(ctx, repoID)
		if err != nil {
			return err
		}
		last, err = write(ctx, s, func(t *tx) (bool, error) {
			t.index = index
			return batch(t)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// indexIfOn returns the refreshed index of a repo; nil if its radar is off.
func (s *Store) indexIfOn(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	enabled, err := read(ctx, s, func(rd reader) (bool, error) {
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

const (
	reposUnseen  = "SELECT DISTINCT repo_id FROM tips WHERE policy_version = 0 AND " + isInFlight
	selectUnseen = "SELECT commit_id FROM tips WHERE repo_id = ? AND policy_version = 0 AND " + isInFlight +
		" AND opened_at >= ? LIMIT ?"
)

// unseenTips reads the next of a repo's tips in flight that the radar has to look
// at, and the deriver of their states.
func (rd reader) unseenTips(repoID int64) ([]int64, *deriver, error) {
	r, err := rd.repoByID(repoID)
	if err != nil {
		return nil, nil, err
	}
	d, err := rd.deriver(r)
	if err != nil || !d.contract.Radar.Enabled {
		return nil, d, err
	}
	tips, err := all(rd, scanID, selectUnseen, repoID, d.contract.Radar.Oldest(rd.now), rescanBatch)
	return tips, d, err
}

func (t *tx) lookAtUnseen(repoID int64) (last bool, err error) {
	tips, d, err := t.unseenTips(repoID)
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
	return len(tips) < rescanBatch, t.drain(d)
}

// rescanBatch is the number of commits that one write re-scans. Each costs as much
// as a registration.
const rescanBatch = 20

// rescan has the radar re-scan a tip in flight that has new facts or was not scanned
// under the radar's settings.
func (t *tx) rescan(d *deriver, commitID int64) (result tipResult, err error) {
	tip, known, err := t.findTip(commitID)
	if err != nil || !known || !tip.InFlightAt(d.contract.Radar, t.now) || tip.PolicyVersion != 0 {
		return result, err
	}
	n, err := t.registrationOf(commitID)
	if err != nil {
		return result, err
	}
	return t.lookAt(d, tip, n, nil)
}
