package recheck

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A RadarResult is the result of deriving again which overlaps block some commits of a repo.
type RadarResult struct {
	Differences []Difference
	// Unchecked are the reasons why overlaps were not compared.
	Unchecked []string

	last int64 // the row id of the last commit; 0 if there were none
}

// Reasons why overlaps are not compared.
const (
	isToBeScanned = "the radar is going to scan the commits again"
	isBounded     = "the radar has reached a limit: there are more overlaps than it stores, or commits than it indexes"
	hasEnded      = "the earlier commit is out of flight, and may have been registered with other changes since"
)

func (r *RadarResult) differ(sha, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{sha, fmt.Sprintf(format, args...)})
}

func (r *RadarResult) skip(reason string) { r.Unchecked = append(r.Unchecked, reason) }

// recheckedTips is the number of tips whose overlaps are derived in one read.
const recheckedTips = 100

// RecheckRadar derives again which overlaps block the commits of a repo, from the change records of its tips. It
// writes nothing, and calls found with each part of the result: of none if the policy of the repo has no overlaps
// block.
func (re *Rechecker) RecheckRadar(ctx context.Context, repoID int64, found func(RadarResult)) error {
	_, limit := re.radar.RadarSize()
	set := radarindex.NewSet(limit) // the indexes of other repos are no longer needed
	for after := int64(0); ; {
		r, err := txn.Read(ctx, re.db, txn.ForWrite(""), func(rd txn.Reader) (RadarResult, error) {
			return re.checkTips(ctx, rd, set, repoID, after)
		})
		if err != nil || r.last == 0 {
			return err
		}
		found(r)
		after = r.last
	}
}

// checkTips rechecks the next tips in flight, after the row id after. All that it reads is of one snapshot.
func (re *Rechecker) checkTips(
	ctx context.Context, rd txn.Reader, set *radarindex.Set, repoID, after int64,
) (r RadarResult, err error) {
	d, err := re.facts.DeriverByID(rd, repoID)
	if err != nil || d.Repo.Deleted || !d.Contract.Radar.Blocks() {
		return r, err
	}
	tips, err := txn.All(rd, scanScannedTip,
		selectScannedTip+"t.repo_id = ? AND t.commit_id > ? AND t."+facts.IsInFlight+" ORDER BY t.commit_id LIMIT ?",
		repoID, after, recheckedTips)
	if err != nil || len(tips) == 0 {
		return r, err
	}
	r.last = tips[len(tips)-1].CommitID

	index, err := set.Fresh(ctx, repoID, overlaps.TipReader{Reader: rd})
	if err != nil {
		return r, err
	}
	plan, err := planOf(rd, repoID, after, r.last)
	if err != nil {
		return r, err
	}
	c := radarChecker{rd, d.Contract.Radar, index, plan, &r}
	for _, tip := range tips {
		if err := c.tip(tip); err != nil {
			return r, err
		}
	}
	return r, nil
}

// A scannedTip is a tip with whether the last scan of it has found more overlaps than are stored.
type scannedTip struct {
	radarindex.Tip
	isTruncated bool
}

const selectScannedTip = "SELECT " + facts.TipColumns + ", t.truncated FROM tips t WHERE "

func scanScannedTip(row txn.Scanner) (t scannedTip, err error) {
	t.Tip, err = facts.ScanTipAnd(row, &t.isTruncated)
	return t, err
}

// selectOpenOverlaps reads the overlaps of a tip with earlier ones that are compared with it.
const selectOpenOverlaps = `
SELECT o.earlier, o.level, o.path, o.reason FROM overlaps o JOIN tips e ON e.commit_id = o.earlier
WHERE o.later = ? AND e.` + facts.IsLive + ` AND e.place < ? AND e.opened_at >= ? ORDER BY o.earlier`

func scanOpenOverlap(row txn.Scanner) (p overlaps.PairRow, err error) {
	return p, row.Scan(&p.Earlier, &p.Level, &p.Path, &p.Reason)
}

// says reports whether a row says what was derived.
func says(p overlaps.PairRow, m radarindex.Match) bool {
	return p.Level == m.Level && p.Path == m.Paths[0].Path && p.Reason == m.Paths[0].Reason
}

// A radarChecker compares the stored overlaps of a repo's tips with those that are derived.
type radarChecker struct {
	txn.Reader
	settings conflicts.Settings
	index    *radarindex.Index
	plan     plan
	*RadarResult
}

// tip compares the overlaps of a tip in flight with earlier ones.
func (c *radarChecker) tip(l scannedTip) error {
	switch {
	case !l.InFlightAt(c.settings, c.Now):
		return nil
	case l.PolicyVersion == 0 && !c.plan.includes(l.CommitID):
		c.differ(l.SHA, "the radar is to scan it again, and that is not planned")
		return nil
	case l.PolicyVersion == 0:
		c.skip(isToBeScanned)
		return nil
	}

	n, err := facts.RegistrationOf(c.Reader, l.CommitID)
	if err != nil {
		return err
	}
	if facts.JoinLineage(overlaps.TipOf(l.SHA, n)) != facts.JoinLineage(l.Tip.Tip) {
		c.differ(l.SHA, "the radar has it on other commits than it was registered with")
	}

	stored, err := txn.All(c.Reader, scanOpenOverlap, selectOpenOverlaps, l.CommitID, l.Place, c.settings.Oldest(c.Now))
	if err != nil {
		return fmt.Errorf("read overlaps: %w", err)
	}
	scan := c.index.ScanBlocking(c.settings, l.Tip, n, c.Now)
	if scan.More {
		c.skip(isBounded)
	}
	return c.compare(l, stored, scan)
}

// compare compares the stored overlaps of a tip with those that a scan has found.
func (c *radarChecker) compare(l scannedTip, stored []overlaps.PairRow, scan *radarindex.Scan) error {
	derived := make(map[int64]radarindex.Match, len(scan.Matches))
	for _, m := range scan.Matches {
		derived[m.CommitID] = m
	}
	for _, p := range stored {
		m, isDerived := derived[p.Earlier]
		delete(derived, p.Earlier)
		if isDerived && says(p, m) || !isDerived && p.Level < c.settings.Block {
			continue
		}
		if err := c.other(l, p, scan); err != nil {
			return err
		}
	}

	for _, id := range slices.Sorted(maps.Keys(derived)) {
		if err := c.missing(l, derived[id]); err != nil {
			return err
		}
	}
	return nil
}

// other reports an overlap that the scan has not found as it is stored, unless the change records give it.
func (c *radarChecker) other(l scannedTip, p overlaps.PairRow, scan *radarindex.Scan) error {
	e, err := c.scannedTip(p.Earlier)
	if err != nil {
		return err
	}
	changes, err := facts.FindChanges(c.Reader, p.Earlier)
	if err != nil {
		return err
	}

	m, overlap := scan.Compare(&e.Tip, scan.FootprintOf(changes))
	endedBefore := e.Flight != radarindex.InFlight && e.EndedAt <= l.OpenedAt && e.Seq < l.Place
	switch {
	case endedBefore, radar.Related(l.Tip.Tip, e.Tip.Tip), !overlap:
		c.differ(l.SHA, "an overlap with %s is stored as %s, and they have none", e.SHA, p.Level)
	case says(p, m):
	case l.isTruncated || e.isTruncated:
		c.skip(isBounded)
	default:
		c.differ(l.SHA, "its overlap with %s is stored as %s (%s of %s), and is %s (%s of %s)", e.SHA, p.Level, p.Reason,
			p.Path, m.Level, m.Paths[0].Reason, m.Paths[0].Path)
	}
	return nil
}

// missing reports an overlap that is not stored, unless the server may have had a reason.
func (c *radarChecker) missing(l scannedTip, m radarindex.Match) error {
	e, err := c.scannedTip(m.CommitID)
	if err != nil {
		return err
	}
	details, err := facts.FindLineage(c.Reader, e.CommitID)
	switch {
	case err != nil:
		return err
	case slices.Contains(details.Contained, l.SHA): // the last scan may have been that of the earlier one
	case e.Flight != radarindex.InFlight:
		c.skip(hasEnded)
	case e.PolicyVersion == 0:
		c.skip(isToBeScanned)
	case l.isTruncated || e.isTruncated:
		c.skip(isBounded)
	default:
		c.differ(l.SHA, "its overlap with %s, %s (%s of %s), is not stored", e.SHA, m.Level, m.Paths[0].Reason,
			m.Paths[0].Path)
	}
	return nil
}

// scannedTip reads a tip of the table tips.
func (c *radarChecker) scannedTip(commitID int64) (scannedTip, error) {
	e, err := scanScannedTip(c.Row(selectScannedTip+"t.commit_id = ?", commitID))
	if err != nil {
		return e, fmt.Errorf("read tip: %w", err)
	}
	return e, nil
}
