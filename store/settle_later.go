package store

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// settleNext settles the next commits of a job. The missing verdicts on their evidence are stored first, and
// the radar's index refreshed, so that the writer does not have to.
func (s *Store) settleNext(ctx context.Context, j *backlog.Job) error {
	for range maxIdle {
		more, err := s.evaluateNext(ctx, *j)
		if err != nil {
			return err
		}
		index, err := s.enabledIndex(ctx, j.Repo)
		if err != nil {
			return err
		}

		stuck := false
		err = s.advance(ctx, j, func(t *tx, j *backlog.Job) (done bool, err error) {
			t.useIndex(index)
			done, stuck, err = t.settleNext(j)
			return done, err
		})
		if err != nil || !stuck || more {
			return err
		}
	}
	return errIdle
}

// settleNext settles the next commits of a job. stuck reports that the evidence of the first of them lacks
// verdicts.
func (t *tx) settleNext(j *backlog.Job) (done, stuck bool, err error) {
	d, err := t.deriverByID(j.Repo)
	if err != nil {
		return false, false, err
	}
	commits := []int64{j.Ref}
	if j.Ref == 0 {
		if commits, err = t.nextCommits(j.Repo, j.Position); err != nil || len(commits) == 0 {
			return err == nil, false, err
		}
	}
	if commits, err = t.evaluatedFirst(d, commits); err != nil || len(commits) == 0 {
		return false, err == nil, err
	}
	j.Position, err = t.settleBatch(d, commits, j.Cause)
	return j.Ref != 0, false, err
}

// settleBatch settles as many of the commits as fit in one write, and returns the last of them. The radar
// scans first those that are marked for it: no commit may change its state before its overlaps are known.
func (t *tx) settleBatch(d *deriver, commits []int64, cause ledger.Cause) (last int64, err error) {
	t.inBackground = true
	for scans := 0; len(commits) > 0 && scans < scanBatchSize; commits = commits[1:] {
		last = commits[0]
		result, err := t.rescan(d, last)
		if err != nil {
			return 0, err
		}

		e := workEntry{reached: true}
		switch {
		case cause.Type == ledger.CauseRadar && cause.ID == "":
			if e.cause, err = t.causeOf(last, result); err != nil {
				return 0, err
			}
		case cause.Type != ledger.CausePolicy:
			e.cause, e.runs = cause, cause
		case result.scanned:
			e.cause = d.policyCause()
		}
		if result.scanned {
			scans++
		}
		t.addWorkEntry(last, e)
	}
	return last, t.drain(d)
}

// causeOf is like cause, for a commit given by its row id.
func (t *tx) causeOf(commitID int64, r tipResult) (ledger.Cause, error) {
	c, err := t.findCommitRow(commitID)
	if err != nil {
		return ledger.Cause{}, err
	}
	return t.cause(c, r)
}

// scanBatchSize is the number of commits that the radar scans in one write. Each costs as much as a
// registration.
const scanBatchSize = 20

// rescan has the radar scan a tip again that is in flight and marked for it.
func (t *tx) rescan(d *deriver, commitID int64) (result tipResult, err error) {
	tip, ok, err := t.findTip(commitID)
	if err != nil || !ok || !tip.InFlightAt(d.contract.Radar, t.Now) || tip.PolicyVersion != 0 {
		return result, err
	}
	n, err := t.registrationOf(commitID)
	if err != nil {
		return result, err
	}
	return t.scanOverlaps(d, tip, n, nil)
}

// enabledIndex returns the refreshed index of a repo, or nil if its radar is disabled.
func (s *Store) enabledIndex(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	d, err := read(ctx, s, txn.ForWrite(""), func(rd reader) (*deriver, error) { return rd.deriverByID(repoID) })
	if err != nil || !d.contract.Radar.Enabled {
		return nil, err
	}
	return s.freshIndex(ctx, repoID)
}

// settleExpired settles commits of a repo whose evidence or blocking overlaps have expired, those first that
// have expired first. The next turn of the job is when the next one expires.
func (t *tx) settleExpired(j *backlog.Job) (done bool, err error) {
	expired, err := all(t.reader, scanCommitRow, selectCommitRow+`
WHERE repo_id = ? AND expires > 0 AND expires <= ? ORDER BY expires LIMIT ?`, j.Repo, t.Now, maxSettled)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	now, err := t.firstCommits(expired)
	if err != nil {
		return false, fmt.Errorf("count carried evidence: %w", err)
	}
	list, err := t.subjectsOf(now)
	if err != nil {
		return false, err
	}
	if err := t.gather(list); err != nil {
		return false, err
	}
	for _, s := range list {
		if err := t.settleDue(s, ledger.Cause{}); err != nil {
			return false, err
		}
		switch {
		case s.expires == 0 || s.expires > t.Now:
		case s.isHistory(): // an earlier release has left the time
			s.expires = 0
			t.markDirty(s.commitRow)
		default:
			return false, fmt.Errorf("commit %s expires again at once", s.sha)
		}
	}

	if err := t.kernel.Flush(); err != nil {
		return false, err
	}
	var next ledger.Time
	err = t.Row("SELECT coalesce(min(expires), 0) FROM commits WHERE repo_id = ? AND expires > 0", j.Repo).Scan(&next)
	if err != nil {
		return false, fmt.Errorf("find what expires next: %w", err)
	}
	if next != 0 && next <= t.Now {
		return false, nil
	}
	j.NotBefore = next
	return true, nil
}
