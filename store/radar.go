package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A tipResult is the result of the radar for a commit.
type tipResult struct {
	commit   int64
	scanned  bool // whether the radar has scanned the commit
	place    int64
	overlaps []overlap
	more     bool  // whether there may be more overlaps
	closed   int64 // an earlier tip that it no longer overlaps with; 0 for none
}

// cause returns the cause for settling a commit after a scan: the strongest earlier
// overlap or else the one that has closed.
func (t *tx) cause(c *commitRow, r tipResult) (ledger.Cause, error) {
	cause := ledger.Cause{Type: ledger.CauseRadar, ID: c.sha}
	for _, f := range r.overlaps {
		if f.Place < r.place {
			cause.ID = f.SHA
			return cause, nil
		}
	}
	closed, ok, err := t.findTip(r.closed)
	if ok {
		cause.ID = closed.SHA
	}
	return cause, err
}

// blocked reports whether the commit has an overlap with an earlier commit that blocks
// it.
func (r tipResult) blocked(settings policy.RadarSettings) bool {
	return settings.Blocks() && slices.ContainsFunc(r.overlaps, func(f overlap) bool {
		return f.Place < r.place && f.Level >= settings.Block
	})
}

// track makes a registered commit the tip of its branch, ends the tips that it supersedes
// or contains, and has the radar scan it. n is the registration, and merged includes
// earlier registrations of the commit. ahead is a scan made before the write, or nil.
func (t *tx) track(
	d *deriver, c *commitRow, n, merged ledger.Registration, ahead *prospectScan,
) (tipResult, error) {
	unscanned := tipResult{commit: c.id}
	if merged.Branch == "" {
		return unscanned, nil
	}

	for _, sha := range n.Contained {
		const isContained = "t.flight = ? AND t.commit_id <> ? AND " +
			"t.commit_id = (SELECT id FROM commits WHERE repo_id = ? AND sha = ?)"
		err := t.endTips(d, radarindex.Landed, isContained, radarindex.InFlight, c.id, d.repo.ID, sha)
		if err != nil {
			return unscanned, err
		}
	}

	isTip, err := t.takeBranch(d, c, n.Branch)
	if err != nil {
		return unscanned, err
	}
	if !isTip {
		return unscanned, t.updateLineage(c.id, tipOf(c.sha, merged))
	}
	own, before, err := t.openTip(d, c, tipOf(c.sha, merged))
	if err != nil {
		return unscanned, err
	}
	if own.Flight != radarindex.InFlight {
		return unscanned, t.markOverlapping(own.CommitID)
	}

	if ahead != nil && !ahead.matches(d, before, merged) {
		t.index, ahead = ahead.Index(), nil
	}
	return t.scanOverlaps(d, own, merged, ahead)
}

// scanOverlaps records the overlaps of a tip, and appends their events. If ahead is nil,
// it scans for them.
func (t *tx) scanOverlaps(
	d *deriver, own radarindex.Tip, n ledger.Registration, ahead *prospectScan,
) (tipResult, error) {
	result := tipResult{commit: own.CommitID, place: own.Place}
	if !d.contract.Radar.Enabled {
		return result, nil
	}
	known, err := t.knownPairs(own.CommitID)
	if err != nil {
		return result, err
	}

	own.PolicyVersion = d.repo.PolicyVersion
	if len(n.Changes) > 0 {
		if ahead == nil {
			p := prospect{repo: d.repo, settings: d.contract.Radar, registration: n, tip: own}
			ahead = p.scan(t.indexOf(d.repo.ID), t.Now)
		}
		ahead.Own = own
		t.batch.recent.Add(own, ahead.Footprint)
		overlaps, more, err := t.finish(ahead, known)
		if err != nil {
			return result, err
		}
		result.overlaps, result.more = overlapsOf(overlaps), more
	}

	result.scanned = true
	result.closed, err = t.recordOverlaps(d, own, result, known)
	return result, err
}

// useIndex has the write use a refreshed index of a repo's tips, or none.
func (t *tx) useIndex(index *radarindex.Index) { t.index = index }

// indexOf returns the index that was refreshed for this write, or else the repo's index in
// memory.
func (t *tx) indexOf(repoID int64) *radarindex.Index {
	if t.index != nil && t.index.RepoID() == repoID {
		return t.index
	}
	return t.batch.tips.Get(repoID)
}

// maxReported is the maximum number of overlaps that a registration returns, or reports
// as events.
const maxReported = 20

// recordOverlaps replaces the known overlaps of a commit with those in result, and sets
// their since. It appends events for the maxReported strongest overlaps that are new or
// have a higher level; the others are also marked as reported. It returns an earlier tip
// that the commit no longer overlaps with, or 0.
func (t *tx) recordOverlaps(
	d *deriver, own radarindex.Tip, result tipResult, known map[pairKey]pairRow,
) (closed int64, err error) {
	pairs, report := t.pairs(own, result.overlaps, known, d.contract.Radar.Notify)
	if err := t.overlapEvents(d.repo, own, report[:min(len(report), maxReported)]); err != nil {
		return 0, err
	}

	for _, p := range slices.SortedFunc(maps.Values(known), comparePairs) {
		if p.later == own.CommitID {
			closed = p.earlier
		}
		if err := t.dropPair(d, p, own); err != nil {
			return 0, err
		}
	}
	if err := t.savePairs(pairs); err != nil {
		return 0, err
	}

	var strongest radar.Level
	for _, p := range pairs {
		if p.later == own.CommitID {
			strongest = max(strongest, p.level)
		} else if err := t.raiseLevel(d, p, own); err != nil {
			return 0, err
		}
	}

	_, err = t.Exec("UPDATE tips SET level = ?, truncated = ?, policy_version = ? WHERE commit_id = ?",
		strongest, result.more, d.repo.PolicyVersion, own.CommitID)
	if err != nil {
		return 0, fmt.Errorf("update tip: %w", err)
	}
	return closed, nil
}

// pairs converts the overlaps of a scan to pairs, and removes these from known. It also
// returns the overlaps that events must report.
func (t *tx) pairs(
	own radarindex.Tip, list []overlap, known map[pairKey]pairRow, notify radar.Level,
) (pairs []pairRow, report []overlap) {
	pairs = make([]pairRow, len(list))
	for i, f := range list {
		p := pairRow{
			later: own.CommitID, earlier: f.CommitID, level: f.Level,
			path: f.Paths[0].Path, reason: f.Paths[0].Reason,
		}
		if f.Place > own.Place {
			p.later, p.earlier = f.CommitID, own.CommitID
		}

		before := known[pairKey{p.later, p.earlier}]
		delete(known, pairKey{p.later, p.earlier})
		p.reported, p.since = before.reported, cmp.Or(before.since, t.Now)
		list[i].since = p.since
		if notify > radar.NoLevel && f.Level >= notify && f.Level > before.reported {
			p.reported = f.Level
			report = append(report, f)
		}
		pairs[i] = p
	}
	return pairs, report
}

// raiseLevel raises the level of the later commit of an overlap, and adds that commit to
// the worklist. own is the earlier commit.
func (t *tx) raiseLevel(d *deriver, p pairRow, own radarindex.Tip) error {
	_, err := t.Exec("UPDATE tips SET level = ? WHERE commit_id = ? AND level < ?", p.level, p.later, p.level)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if d.contract.Radar.Blocks() {
		t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// dropPair deletes an overlap that no longer exists.
func (t *tx) dropPair(d *deriver, p pairRow, own radarindex.Tip) error {
	if _, err := t.Exec("DELETE FROM overlaps WHERE later = ? AND earlier = ?", p.later, p.earlier); err != nil {
		return fmt.Errorf("delete overlap: %w", err)
	}
	if p.later != own.CommitID && d.contract.Radar.Blocks() && p.level >= d.contract.Radar.Block {
		t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// overlapEvents appends the events of overlaps. The commit of each event is the one
// registered later.
func (t *tx) overlapEvents(r txn.Repo, own radarindex.Tip, list []overlap) error {
	n := len(list)
	list = append(list[:n:n], overlap{Match: radarindex.Match{Tip: &own}})
	if err := t.addAuthors(list); err != nil {
		return err
	}

	mine := list[n]
	for _, f := range list[:n] {
		later, earlier, o := own, f, f.Overlap
		if f.Place > own.Place {
			later, earlier, o = *f.Tip, mine, o.Swap()
		}

		eventID, err := t.kernel.NewID(r.OrgID, txn.EventPrefix)
		if err != nil {
			return err
		}
		_, err = t.s.Journal.Append(t.kernel, r, ledger.EventRadar, eventID, ledger.Render(ledger.RadarEvent{
			ID: eventID, Org: r.Org, Repo: r.Name, Commit: later.SHA, Level: o.Level,
			Other: ledger.RadarOther{Commit: earlier.SHA, Branch: earlier.Branch, Author: earlier.author},
			Paths: ledger.EventPaths(o.Strongest()), PathsTotal: len(o.Paths), Timestamp: t.Now,
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
