package states

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SettleNext settles the next commits of a job. The missing verdicts on their evidence are stored first, and
// the radar's index refreshed, so that the writer does not have to.
func (st *States) SettleNext(ctx context.Context, j *backlog.Job) error {
	for range maxIdle {
		more, err := st.EvaluateNext(ctx, *j)
		if err != nil {
			return err
		}
		index, err := st.enabledIndex(ctx, j.Repo)
		if err != nil {
			return err
		}

		stuck := false
		err = st.jobs.Advance(ctx, j, func(t *txn.Tx, j *backlog.Job) (done bool, err error) {
			st.radar.UseIndex(index)
			done, stuck, err = st.SettleSome(t, j)
			return done, err
		})
		if err != nil || !stuck || more {
			return err
		}
	}
	return errIdle
}

// SettleSome settles the next commits of a job. stuck reports that the evidence of the first of them lacks
// verdicts.
func (st *States) SettleSome(t *txn.Tx, j *backlog.Job) (done, stuck bool, err error) {
	d, err := st.facts.DeriverByID(t.Reader, j.Repo)
	if err != nil {
		return false, false, err
	}
	commits := []int64{j.Ref}
	if j.Ref == 0 {
		if commits, err = NextCommits(t, j.Repo, j.Position); err != nil || len(commits) == 0 {
			return err == nil, false, err
		}
	}
	if commits, err = st.evaluatedFirst(t, d, commits); err != nil || len(commits) == 0 {
		return false, err == nil, err
	}
	j.Position, err = st.settleBatch(t, d, commits, j.Cause)
	return j.Ref != 0, false, err
}

// settleBatch settles as many of the commits as fit in one write, and returns the last of them. The radar
// scans first those that are marked for it: no commit may change its state before its overlaps are known.
func (st *States) settleBatch(t *txn.Tx, d *facts.Deriver, commits []int64, cause ledger.Cause) (last int64,
	err error) {
	st.inBackground = true
	for scans := 0; len(commits) > 0 && scans < scanBatchSize; commits = commits[1:] {
		last = commits[0]
		result, err := st.rescan(t, d, last)
		if err != nil {
			return 0, err
		}

		e := facts.WorkEntry{Reached: true}
		switch {
		case cause.Type == ledger.CauseRadar && cause.ID == "":
			if e.Cause, err = causeOf(t, last, result); err != nil {
				return 0, err
			}
		case cause.Type != ledger.CausePolicy:
			e.Cause, e.Runs = cause, cause
		case result.Scanned:
			e.Cause = d.PolicyCause()
		}
		if result.Scanned {
			scans++
		}
		st.facts.AddWorkEntry(last, e)
	}
	return last, st.Drain(t, d)
}

// causeOf is like cause, for a commit given by its row id.
func causeOf(t *txn.Tx, commitID int64, r overlaps.TipResult) (ledger.Cause, error) {
	c, err := facts.FindCommitRow(t.Reader, commitID)
	if err != nil {
		return ledger.Cause{}, err
	}
	return overlaps.Cause(t, c, r)
}

// scanBatchSize is the number of commits that the radar scans in one write. Each costs as much as a
// registration.
const scanBatchSize = 20

// rescan has the radar scan a tip again that is in flight and marked for it.
func (st *States) rescan(t *txn.Tx, d *facts.Deriver, commitID int64) (result overlaps.TipResult, err error) {
	tip, ok, err := facts.FindTip(t.Reader, commitID)
	if err != nil || !ok || !tip.InFlightAt(d.Contract.Radar, t.Now) || tip.PolicyVersion != 0 {
		return result, err
	}
	n, err := facts.RegistrationOf(t.Reader, commitID)
	if err != nil {
		return result, err
	}
	return st.radar.ScanOverlaps(t, d, tip, n, nil)
}

// enabledIndex returns the refreshed index of a repo, or nil if its radar is disabled.
func (st *States) enabledIndex(ctx context.Context, repoID int64) (*radarindex.Index, error) {
	d, err := txn.Read(ctx, st.db, txn.ForWrite(""), func(rd txn.Reader) (*facts.Deriver, error) {
		return st.facts.DeriverByID(rd, repoID)
	})
	if err != nil || !d.Contract.Radar.Enabled {
		return nil, err
	}
	return st.radar.FreshIndex(ctx, repoID)
}

// SettleExpired settles commits of a repo whose evidence or blocking overlaps have expired, those first that
// have expired first. The next turn of the job is when the next one expires.
func (st *States) SettleExpired(t *txn.Tx, j *backlog.Job) (done bool, err error) {
	expired, err := txn.All(t.Reader, facts.ScanCommitRow, facts.SelectCommitRow+`
WHERE repo_id = ? AND expires > 0 AND expires <= ? ORDER BY expires LIMIT ?`, j.Repo, t.Now, MaxSettled)
	if err != nil {
		return false, fmt.Errorf("read commits: %w", err)
	}
	now, err := firstCommits(t, expired)
	if err != nil {
		return false, fmt.Errorf("count carried evidence: %w", err)
	}
	list, err := st.commitsOf(t, now)
	if err != nil {
		return false, err
	}
	if err := st.facts.Gather(t.Reader, list); err != nil {
		return false, err
	}
	for _, s := range list {
		if err := st.SettleDue(t, s, ledger.Cause{}); err != nil {
			return false, err
		}
		switch {
		case s.Expires == 0 || s.Expires > t.Now:
		case s.IsHistory(): // an earlier release has left the time
			s.Expires = 0
			st.facts.MarkDirty(s.CommitRow)
		default:
			return false, fmt.Errorf("commit %s expires again at once", s.SHA)
		}
	}

	if err := t.Flush(); err != nil {
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
