package overlaps

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A TipResult is the result of the radar for a commit.
type TipResult struct {
	Commit   int64
	Scanned  bool   // whether the radar has scanned the commit
	behind   string // the tip that stays that of its branch; "" for none
	place    int64
	Overlaps []overlap
	More     bool  // whether there may be more overlaps
	closed   int64 // an earlier tip that it no longer overlaps with; 0 for none
}

// Cause returns the cause for settling a commit after a scan: the strongest earlier
// overlap or else the one that has closed.
func Cause(t *txn.Tx, c *facts.CommitRow, r TipResult) (ledger.Cause, error) {
	cause := ledger.Cause{Type: ledger.CauseRadar, ID: c.SHA}
	for _, f := range r.Overlaps {
		if f.Place < r.place {
			cause.ID = f.SHA
			return cause, nil
		}
	}
	closed, ok, err := facts.FindTip(t.Reader, r.closed)
	if ok {
		cause.ID = closed.SHA
	}
	return cause, err
}

// Blocked reports whether the commit has an overlap with an earlier commit that blocks
// it.
func (r TipResult) Blocked(settings conflicts.Settings) bool {
	return settings.Blocks() && slices.ContainsFunc(r.Overlaps, func(f overlap) bool {
		return f.Place < r.place && f.Level >= settings.Block
	})
}

// Track makes a registered commit the tip of its branch, ends the tips that it supersedes
// or contains, and has the radar scan it. n is the registration, and merged includes
// earlier registrations of the commit. ahead is a scan made before the write, or nil.
func (ra *Radar) Track(t *txn.Tx,
	d *facts.Deriver, c *facts.CommitRow, n, merged ledger.Registration, ahead *ProspectScan,
) (TipResult, error) {
	unscanned := TipResult{Commit: c.ID}
	if merged.Branch == "" {
		return unscanned, nil
	}

	for _, sha := range n.Contained {
		const isContained = "t.flight = ? AND t.commit_id <> ? AND " +
			"t.commit_id = (SELECT id FROM commits WHERE repo_id = ? AND sha = ?)"
		err := ra.EndTips(t, d, radarindex.Landed, isContained, radarindex.InFlight, c.ID, d.Repo.ID, sha)
		if err != nil {
			return unscanned, err
		}
	}

	isTip, behind, err := ra.takeBranch(t, d, c, n.Branch)
	if err != nil {
		return unscanned, err
	}
	unscanned.behind = behind
	if !isTip {
		return unscanned, ra.updateLineage(t, c.ID, TipOf(c.SHA, merged))
	}
	own, before, err := ra.openTip(t, d, c, TipOf(c.SHA, merged))
	if err != nil {
		return unscanned, err
	}
	if own.Flight != radarindex.InFlight {
		return unscanned, ra.markOverlapping(t, own.CommitID)
	}

	if ahead != nil && !ahead.matches(d, before, merged) {
		ra.index, ahead = ahead.Index(), nil
	}
	return ra.ScanOverlaps(t, d, own, merged, ahead)
}

// ScanOverlaps records the overlaps of a tip, and appends their events. If ahead is nil,
// it scans for them.
func (ra *Radar) ScanOverlaps(t *txn.Tx,
	d *facts.Deriver, own radarindex.Tip, n ledger.Registration, ahead *ProspectScan,
) (TipResult, error) {
	result := TipResult{Commit: own.CommitID, place: own.Place}
	if !d.Contract.Radar.Enabled {
		return result, nil
	}
	known, err := knownPairs(t, own.CommitID)
	if err != nil {
		return result, err
	}

	own.PolicyVersion = d.Repo.PolicyVersion
	if len(n.Changes) > 0 {
		if ahead == nil {
			p := prospect{repo: d.Repo, settings: d.Contract.Radar, registration: n, Tip: own}
			ahead = p.scan(ra.indexOf(t, d.Repo.ID), t.Now)
		}
		ahead.Own = own
		ra.recent.Add(own, ahead.Footprint)
		overlaps, more, err := ra.finish(t, ahead, known)
		if err != nil {
			return result, err
		}
		result.Overlaps, result.More = overlapsOf(overlaps), more
	}

	result.Scanned = true
	result.closed, err = ra.recordOverlaps(t, d, own, result, known)
	return result, err
}

// UseIndex has the write use a refreshed index of a repo's tips, or none.
func (ra *Radar) UseIndex(index *radarindex.Index) { ra.index = index }

// indexOf returns the index that was refreshed for this write, or else the repo's index in
// memory.
func (ra *Radar) indexOf(t *txn.Tx, repoID int64) *radarindex.Index {
	if ra.index != nil && ra.index.RepoID() == repoID {
		return ra.index
	}
	return ra.tips.Get(repoID)
}

// MaxReported is the maximum number of overlaps that a registration returns, or reports
// as events.
const MaxReported = 20

// recordOverlaps replaces the known overlaps of a commit with those in result, and sets
// their since. It appends events for the MaxReported strongest overlaps that are new or
// have a higher level; the others are also marked as reported. It returns an earlier tip
// that the commit no longer overlaps with, or 0.
func (ra *Radar) recordOverlaps(t *txn.Tx,
	d *facts.Deriver, own radarindex.Tip, result TipResult, known map[pairKey]PairRow,
) (closed int64, err error) {
	pairs, report := pairs(t, own, result.Overlaps, known, d.Contract.Radar.Notify)
	if err := ra.overlapEvents(t, d.Repo, own, report[:min(len(report), MaxReported)]); err != nil {
		return 0, err
	}

	for _, p := range slices.SortedFunc(maps.Values(known), comparePairs) {
		if p.later == own.CommitID {
			closed = p.Earlier
		}
		if err := ra.dropPair(t, d, p, own); err != nil {
			return 0, err
		}
	}
	if err := savePairs(t, pairs); err != nil {
		return 0, err
	}

	var strongest radar.Level
	for _, p := range pairs {
		if p.later == own.CommitID {
			strongest = max(strongest, p.Level)
		} else if err := ra.raiseLevel(t, d, p, own); err != nil {
			return 0, err
		}
	}

	_, err = t.Exec("UPDATE tips SET level = ?, truncated = ?, policy_version = ? WHERE commit_id = ?",
		strongest, result.More, d.Repo.PolicyVersion, own.CommitID)
	if err != nil {
		return 0, fmt.Errorf("update tip: %w", err)
	}
	return closed, nil
}

// pairs converts the overlaps of a scan to pairs, and removes these from known. It also
// returns the overlaps that events must report.
func pairs(t *txn.Tx,
	own radarindex.Tip, list []overlap, known map[pairKey]PairRow, notify radar.Level,
) (pairs []PairRow, report []overlap) {
	pairs = make([]PairRow, len(list))
	for i, f := range list {
		p := PairRow{
			later: own.CommitID, Earlier: f.CommitID, Level: f.Level,
			Path: f.Paths[0].Path, Reason: f.Paths[0].Reason,
		}
		if f.Place > own.Place {
			p.later, p.Earlier = f.CommitID, own.CommitID
		}

		before := known[pairKey{p.later, p.Earlier}]
		delete(known, pairKey{p.later, p.Earlier})
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
func (ra *Radar) raiseLevel(t *txn.Tx, d *facts.Deriver, p PairRow, own radarindex.Tip) error {
	_, err := t.Exec("UPDATE tips SET level = ? WHERE commit_id = ? AND level < ?", p.Level, p.later, p.Level)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if d.Contract.Radar.Blocks() {
		ra.facts.AddWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// dropPair deletes an overlap that no longer exists.
func (ra *Radar) dropPair(t *txn.Tx, d *facts.Deriver, p PairRow, own radarindex.Tip) error {
	if _, err := t.Exec("DELETE FROM overlaps WHERE later = ? AND earlier = ?", p.later, p.Earlier); err != nil {
		return fmt.Errorf("delete overlap: %w", err)
	}
	if p.later != own.CommitID && d.Contract.Radar.Blocks() && p.Level >= d.Contract.Radar.Block {
		ra.facts.AddWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// overlapEvents appends the events of overlaps. The commit of each event is the one
// registered later.
func (ra *Radar) overlapEvents(t *txn.Tx, r txn.Repo, own radarindex.Tip, list []overlap) error {
	n := len(list)
	list = append(list[:n:n], overlap{Match: radarindex.Match{Tip: &own}})
	if err := addAuthors(t.Reader, list); err != nil {
		return err
	}

	mine := list[n]
	for _, f := range list[:n] {
		later, earlier, o := own, f, f.Overlap
		if f.Place > own.Place {
			later, earlier, o = *f.Tip, mine, o.Swap()
		}

		eventID, err := t.NewID(r.OrgID, txn.EventPrefix)
		if err != nil {
			return err
		}
		_, err = ra.journal.Append(t, r, ledger.EventRadar, eventID, ledger.Render(ledger.RadarEvent{
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
