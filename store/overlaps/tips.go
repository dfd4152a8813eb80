package overlaps

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// openTip makes a commit the tip of its branch. A commit that was already in flight, or
// is deployed, keeps its place in the order of registration; any other goes to the end.
// before is the previous sequence number of the tip, or 0 if the commit was not a tip.
func (ra *Radar) openTip(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, tip radar.Tip) (row radarindex.Tip,
	before int64, err error) {
	if row, _, err = facts.FindTip(t.Reader, c.ID); err != nil {
		return row, 0, err
	}

	r := d.Repo
	before = row.Seq
	if err = t.Row("SELECT coalesce(max(seq), 0) + 1 FROM tips WHERE repo_id = ?", r.ID).Scan(&row.Seq); err != nil {
		return row, 0, fmt.Errorf("number tip: %w", err)
	}

	staysDeployed := row.Flight == radarindex.Deployed && c.State == ledger.Deployed
	var blocked []int64 // commits that the tip no longer blocks if it goes to the end
	if !row.InFlightAt(d.Contract.Radar, t.Now) && !staysDeployed {
		if blocked, err = blockedBy(t, d, row); err != nil {
			return row, 0, err
		}
		row.Place, row.OpenedAt = row.Seq, t.Now
		if err := clearOverlaps(t, c.ID); err != nil {
			return row, 0, err
		}
	}

	row.Tip, row.CommitID, row.PolicyVersion = tip, c.ID, r.PolicyVersion
	switch {
	case staysDeployed:
	case c.State == ledger.Deployed:
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
		c.ID, r.ID, tip.SHA, tip.Branch, row.Flight, row.Place, row.Seq, row.OpenedAt, row.EndedAt,
		r.PolicyVersion, facts.JoinLineage(tip))
	if err != nil {
		return row, 0, fmt.Errorf("insert tip: %w", err)
	}
	ra.facts.AddWork(ledger.Cause{Type: ledger.CauseRadar, ID: c.SHA}, blocked...)
	return row, before, nil
}

// updateLineage updates the lineage of a commit that was registered again, but does not
// become the tip of its branch. It is a no-op if the commit was never a tip.
func (ra *Radar) updateLineage(t *txn.Tx, commitID int64, tip radar.Tip) error {
	row, ok, err := facts.FindTip(t.Reader, commitID)
	if err != nil || !ok {
		return err
	}
	_, err = t.Exec("UPDATE tips SET lineage = ?, "+facts.Renumber+" WHERE commit_id = ?", facts.JoinLineage(tip),
		commitID)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if err := ra.mark(t, "?", commitID); err != nil {
		return err
	}
	if row.Flight >= radarindex.Superseded {
		return nil
	}
	return ra.markOverlapping(t, commitID)
}

// markOverlapping has the radar scan the later tips that overlap with a commit, because the commit has new
// facts.
func (ra *Radar) markOverlapping(t *txn.Tx, commitID int64) error {
	return ra.mark(t, "SELECT o.later "+withLater+"WHERE "+laterThan, commitID)
}

// mark marks the tips of commits for a scan, and has those in flight scanned in the background.
func (ra *Radar) mark(t *txn.Tx, commits string, args ...any) error {
	if _, err := t.Exec("UPDATE tips SET policy_version = 0 WHERE commit_id IN ("+commits+")", args...); err != nil {
		return fmt.Errorf("mark tips: %w", err)
	}
	return ra.jobs.LaterEach(t, backlog.Settle, `
SELECT t.repo_id, t.commit_id AS ref, r.org_id, 'radar' AS cause_type, '' AS cause_id
FROM tips t JOIN repos r ON r.id = t.repo_id WHERE t.`+facts.IsInFlight+" AND t.commit_id IN ("+commits+")", args...)
}

// MarkAllTips marks all of a repo's tips in flight for a scan, because the radar's settings have changed. The
// job that applies the policy has them scanned.
func MarkAllTips(t *txn.Tx, repoID int64) error {
	_, err := t.Exec("UPDATE tips SET policy_version = 0 WHERE repo_id = ? AND "+facts.IsInFlight, repoID)
	if err != nil {
		return fmt.Errorf("mark tips: %w", err)
	}
	return nil
}

// takeBranch reports whether a registered commit becomes the tip of its branch, and
// ends the tips that it supersedes. If branch is empty, a commit that was a tip stays
// one. An ancestor of the current tip does not become the tip: it was pushed late, or
// again. behind is then this tip, if it is in flight.
func (ra *Radar) takeBranch(t *txn.Tx, d *facts.Deriver, c *facts.CommitRow, branch string) (isTip bool, behind string,
	err error) {
	if branch == "" {
		tip, _, err := facts.FindTip(t.Reader, c.ID)
		return tip.InFlightAt(d.Contract.Radar, t.Now), "", err
	}
	others, err := tipsBefore(t, d, radarindex.Superseded, "t.branch = ? AND t.commit_id <> ?", branch, c.ID)
	if err != nil {
		return false, "", err
	}

	isTip = true
	for _, o := range others {
		if !o.HasAncestor(c.SHA) {
			continue
		}
		isTip = false
		if o.InFlightAt(d.Contract.Radar, t.Now) {
			behind = o.SHA
		}
	}
	if !isTip {
		return false, behind, nil
	}
	return true, "", ra.endEach(t, d, radarindex.Superseded, others)
}

// tipsBefore reads the tips that match the condition and whose flight is before to.
func tipsBefore(t *txn.Tx, d *facts.Deriver, to radarindex.Flight, where string, args ...any) ([]radarindex.Tip,
	error) {
	tips, err := txn.All(t.Reader, facts.ScanTip,
		"SELECT "+facts.TipColumns+" FROM tips t WHERE t.repo_id = ? AND t.flight < ? AND "+where,
		append([]any{d.Repo.ID, to}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}
	return tips, nil
}

// EndTips takes the tips that match the condition out of flight. It adds them, and the
// commits that they blocked, to the worklist. Their overlaps are no longer open, and
// are deleted in the background.
func (ra *Radar) EndTips(t *txn.Tx, d *facts.Deriver, to radarindex.Flight, where string, args ...any) error {
	tips, err := tipsBefore(t, d, to, where, args...)
	if err != nil {
		return err
	}
	return ra.endEach(t, d, to, tips)
}

func (ra *Radar) endEach(t *txn.Tx, d *facts.Deriver, to radarindex.Flight, tips []radarindex.Tip) error {
	for _, tip := range tips {
		if err := ra.endTip(t, d, tip, to); err != nil {
			return err
		}
	}
	return nil
}

func (ra *Radar) endTip(t *txn.Tx, d *facts.Deriver, tip radarindex.Tip, to radarindex.Flight) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = ?, "+facts.Renumber+" WHERE commit_id = ?",
		to, t.Now, tip.CommitID)
	if err != nil {
		return fmt.Errorf("end tip: %w", err)
	}
	affected := []int64{tip.CommitID} // no overlap blocks it now
	if to >= radarindex.Superseded {  // before that, it is still compared with others
		blocked, err := blockedBy(t, d, tip)
		if err != nil {
			return err
		}
		affected = append(affected, blocked...)
	}
	if d.Contract.Radar.Blocks() {
		ra.facts.AddWork(ledger.Cause{Type: ledger.CauseRadar, ID: tip.SHA}, affected...)
	}
	return nil
}

// blockedBy returns the commits that overlaps with a tip block from PROMOTABLE. It
// returns none if the contract's radar does not block.
func blockedBy(t *txn.Tx, d *facts.Deriver, tip radarindex.Tip) ([]int64, error) {
	if !d.Contract.Radar.Blocks() {
		return nil, nil
	}
	block := d.Contract.Radar.Block
	blocked, err := txn.All(t.Reader, txn.ScanID,
		"SELECT o.later "+withLater+"WHERE "+laterThan+" AND l.level >= ? AND o.level >= ?",
		tip.CommitID, block, block)
	if err != nil {
		return nil, fmt.Errorf("read blocked commits: %w", err)
	}
	return blocked, nil
}

// DeployTip takes a deployed commit out of flight.
func DeployTip(t *txn.Tx, commitID int64) error {
	_, err := t.Exec("UPDATE tips SET flight = ?, ended_at = ?, "+facts.Renumber+" WHERE commit_id = ? AND flight = ?",
		radarindex.Deployed, t.Now, commitID, radarindex.InFlight)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}

// ReturnTip puts the tip of a commit that was rolled back in flight again, marked for a scan.
func ReturnTip(t *txn.Tx, commitID int64) error {
	_, err := t.Exec(`
UPDATE tips SET flight = ?, ended_at = 0, policy_version = 0, `+facts.Renumber+`
WHERE commit_id = ? AND flight = ?`, radarindex.InFlight, commitID, radarindex.Deployed)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}
