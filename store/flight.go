package store

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// openTip makes a commit the tip of its branch. A commit that was already in flight, or
// is deployed, keeps its place in the order of registration; any other goes to the end.
// before is the previous sequence number of the tip, or 0 if the commit was not a tip.
func (t *tx) openTip(d *deriver, c *commitRow, tip radar.Tip) (row radarindex.Tip, before int64, err error) {
	if row, _, err = t.findTip(c.id); err != nil {
		return row, 0, err
	}

	r := d.repo
	before = row.Seq
	if err = t.Row("SELECT coalesce(max(seq), 0) + 1 FROM tips WHERE repo_id = ?", r.ID).Scan(&row.Seq); err != nil {
		return row, 0, fmt.Errorf("number tip: %w", err)
	}

	staysDeployed := row.Flight == radarindex.Deployed && c.state == ledger.Deployed
	var blocked []int64 // commits that the tip no longer blocks if it goes to the end
	if !row.InFlightAt(d.contract.Radar, t.Now) && !staysDeployed {
		if blocked, err = t.blockedBy(d, row); err != nil {
			return row, 0, err
		}
		row.Place, row.OpenedAt = row.Seq, t.Now
		if err := t.clearOverlaps(c.id); err != nil {
			return row, 0, err
		}
	}

	row.Tip, row.CommitID, row.PolicyVersion = tip, c.id, r.PolicyVersion
	switch {
	case staysDeployed:
	case c.state == ledger.Deployed:
		row.Flight, row.EndedAt = radarindex.Deployed, t.Now
	default:
		row.Flight, row.EndedAt = radarindex.InFlight, 0
	}

	_, err = t.Exec(`
INSERT INTO tips (commit_id, repo_id, sha, branch, flight, place, seq, opened_at, ended_at, policy_version, lineage)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (commit_id) DO UPDATE SET branch = excluded.branch, flight = excluded.flight,
  place = excluded.place, seq = excluded.seq, opened_at = excluded.opened_at,
  ended_at = excluded.ended_at, policy_version = excluded.policy_version, lineage = excluded.lineage,
  level = 0, truncated = 0`,
		c.id, r.ID, tip.SHA, tip.Branch, row.Flight, row.Place, row.Seq, row.OpenedAt, row.EndedAt,
		r.PolicyVersion, joinLineage(tip))
	if err != nil {
		return row, 0, fmt.Errorf("insert tip: %w", err)
	}
	t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: c.sha}, blocked...)
	return row, before, nil
}

// updateLineage updates the lineage of a commit that was registered again, but does not
// become the tip of its branch. It is a no-op if the commit was never a tip.
func (t *tx) updateLineage(commitID int64, tip radar.Tip) error {
	row, ok, err := t.findTip(commitID)
	if err != nil || !ok {
		return err
	}
	_, err = t.Exec("UPDATE tips SET lineage = ?, "+renumber+" WHERE commit_id = ?", joinLineage(tip), commitID)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if err := t.mark("?", commitID); err != nil {
		return err
	}
	if row.Flight >= radarindex.Superseded {
		return nil
	}
	return t.markOverlapping(commitID)
}

// markOverlapping has the radar scan the later tips that overlap with a commit, because the commit has new
// facts.
func (t *tx) markOverlapping(commitID int64) error {
	return t.mark("SELECT o.later "+withLater+"WHERE "+laterThan, commitID)
}

// mark marks the tips of commits for a scan, and has those in flight scanned in the background.
func (t *tx) mark(commits string, args ...any) error {
	if _, err := t.Exec("UPDATE tips SET policy_version = 0 WHERE commit_id IN ("+commits+")", args...); err != nil {
		return fmt.Errorf("mark tips: %w", err)
	}
	return t.s.jobs.LaterEach(t.kernel, backlog.Settle, `
SELECT t.repo_id, t.commit_id AS ref, r.org_id, 'radar' AS cause_type, '' AS cause_id
FROM tips t JOIN repos r ON r.id = t.repo_id WHERE t.`+isInFlight+" AND t.commit_id IN ("+commits+")", args...)
}

// markAllTips marks all of a repo's tips in flight for a scan, because the radar's settings have changed. The
// job that applies the policy has them scanned.
func (t *tx) markAllTips(repoID int64) error {
	_, err := t.Exec("UPDATE tips SET policy_version = 0 WHERE repo_id = ? AND "+isInFlight, repoID)
	if err != nil {
		return fmt.Errorf("mark tips: %w", err)
	}
	return nil
}

// takeBranch reports whether a registered commit becomes the tip of its branch, and
// ends the tips that it supersedes. If branch is empty, a commit that was a tip stays
// one. An ancestor of the current tip does not become the tip: it was pushed late, or
// again.
func (t *tx) takeBranch(d *deriver, c *commitRow, branch string) (bool, error) {
	if branch == "" {
		tip, _, err := t.findTip(c.id)
		return tip.InFlightAt(d.contract.Radar, t.Now), err
	}
	others, err := t.tipsBefore(d, radarindex.Superseded, "t.branch = ? AND t.commit_id <> ?", branch, c.id)
	if err != nil || slices.ContainsFunc(others, func(o radarindex.Tip) bool { return o.HasAncestor(c.sha) }) {
		return false, err
	}
	return true, t.endEach(d, radarindex.Superseded, others)
}

// tipsBefore reads the tips that match the condition and whose flight is before to.
func (t *tx) tipsBefore(d *deriver, to radarindex.Flight, where string, args ...any) ([]radarindex.Tip, error) {
	tips, err := all(t.reader, scanTip,
		"SELECT "+tipColumns+" FROM tips t WHERE t.repo_id = ? AND t.flight < ? AND "+where,
		append([]any{d.repo.ID, to}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}
	return tips, nil
}

// endTips takes the tips that match the condition out of flight. It adds them, and the
// commits that they blocked, to the worklist. Their overlaps are no longer open, and
// are deleted in the background.
func (t *tx) endTips(d *deriver, to radarindex.Flight, where string, args ...any) error {
	tips, err := t.tipsBefore(d, to, where, args...)
	if err != nil {
		return err
	}
	return t.endEach(d, to, tips)
}

func (t *tx) endEach(d *deriver, to radarindex.Flight, tips []radarindex.Tip) error {
	for _, tip := range tips {
		if err := t.endTip(d, tip, to); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) endTip(d *deriver, tip radarindex.Tip, to radarindex.Flight) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = ?, "+renumber+" WHERE commit_id = ?",
		to, t.Now, tip.CommitID)
	if err != nil {
		return fmt.Errorf("end tip: %w", err)
	}
	affected := []int64{tip.CommitID} // no overlap blocks it now
	if to >= radarindex.Superseded {  // before that, it is still compared with others
		blocked, err := t.blockedBy(d, tip)
		if err != nil {
			return err
		}
		affected = append(affected, blocked...)
	}
	if d.contract.Radar.Blocks() {
		t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: tip.SHA}, affected...)
	}
	return nil
}

// blockedBy returns the commits that overlaps with a tip block from PROMOTABLE. It
// returns none if the contract's radar does not block.
func (t *tx) blockedBy(d *deriver, tip radarindex.Tip) ([]int64, error) {
	if !d.contract.Radar.Blocks() {
		return nil, nil
	}
	block := d.contract.Radar.Block
	blocked, err := all(t.reader, txn.ScanID,
		"SELECT o.later "+withLater+"WHERE "+laterThan+" AND l.level >= ? AND o.level >= ?",
		tip.CommitID, block, block)
	if err != nil {
		return nil, fmt.Errorf("read blocked commits: %w", err)
	}
	return blocked, nil
}

// deployTip takes a deployed commit out of flight.
func (t *tx) deployTip(commitID int64) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = ?, "+renumber+" WHERE commit_id = ? AND flight = ?",
		radarindex.Deployed, t.Now, commitID, radarindex.InFlight)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}
