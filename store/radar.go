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
)

// A tipResult is what the radar found for a commit.
type tipResult struct {
	commit int64
	looked bool // whether it did look
	place  int64
	found  []found
	more   bool  // there are more, or may be
	lost   int64 // an earlier tip that it overlaps with no more; 0 for none
}

// cause tells why a commit is settled after the radar has looked at it: for the
// strongest that it comes behind, or for one that it does not any more.
func (t *tx) cause(c *commitRow, r tipResult) (ledger.Cause, error) {
	cause := ledger.Cause{Type: ledger.CauseRadar, ID: c.sha}
	for _, f := range r.found {
		if f.Place < r.place {
			cause.ID = f.SHA
			return cause, nil
		}
	}
	lost, known, err := t.findTip(r.lost)
	if known {
		cause.ID = lost.SHA
	}
	return cause, err
}

// blocked reports whether it overlaps with an earlier commit that blocks it.
func (r tipResult) blocked(settings policy.RadarSettings) bool {
	return settings.Blocks() && slices.ContainsFunc(r.found, func(f found) bool {
		return f.Place < r.place && f.Level >= settings.Block
	})
}

// track makes a registered commit the tip of its branch, ends the tips that it
// replaces or holds, and has the radar look at it. A registration says something
// of the commit, of which more may be known.
func (t *tx) track(d *deriver, c *commitRow, said, known ledger.Registration, ahead *look) (tipResult, error) {
	unseen := tipResult{commit: c.id}
	if known.Branch == "" {
		return unseen, nil
	}
	for _, sha := range said.Contained {
		const isContained = "t.flight = ? AND t.commit_id <> ? AND " +
			"t.commit_id = (SELECT id FROM commits WHERE repo_id = ? AND sha = ?)"
		err := t.endTips(d, radarindex.Landed, isContained, radarindex.InFlight, c.id, d.repo.id, sha)
		if err != nil {
			return unseen, err
		}
	}
	takes, err := t.takeBranch(d, c, said.Branch)
	if err != nil {
		return unseen, err
	}
	if !takes {
		return unseen, t.retell(c.id, tipOf(c.sha, known))
	}
	own, before, err := t.openTip(d, c, tipOf(c.sha, known))
	if err != nil {
		return unseen, err
	}
	if own.Flight != radarindex.InFlight {
		return unseen, t.lookAgainBeside(own.CommitID)
	}
	if ahead != nil && !ahead.isOf(d, before, known) {
		t.index, ahead = ahead.Index(), nil
	}
	return t.lookAt(d, own, known, ahead)
}

// lookAt records and tells what a tip overlaps with. It looks itself where that
// was not done ahead.
func (t *tx) lookAt(d *deriver, own radarindex.Tip, n ledger.Registration, ahead *look) (tipResult, error) {
	result := tipResult{commit: own.CommitID, place: own.Place}
	if !d.contract.Radar.Enabled {
		return result, nil
	}
	known, err := t.knownPairs(own.CommitID)
	if err != nil {
		return result, err
	}
	own.PolicyVersion = d.repo.policyVersion
	if len(n.Changes) > 0 {
		if ahead == nil {
			ahead = lookIn(t.indexOf(d.repo.id), prospect{repo: d.repo, settings: d.contract.Radar, registration: n, tip: own},
				t.now)
		}
		ahead.Own = own
		t.batch.recent.Add(own, ahead.Footprint)
		overlaps, more, err := t.finish(ahead, known)
		if err != nil {
			return result, err
		}
		result.found, result.more = foundOf(overlaps), more
	}
	result.looked = true
	result.lost, err = t.recordOverlaps(d, own, result, known)
	return result, err
}

// indexOf returns the index of a repo, as it is.
func (t *tx) indexOf(repoID int64) *radarindex.Index {
	if t.index != nil && t.index.RepoID() == repoID {
		return t.index
	}
	return t.batch.tips.Get(repoID)
}

// answeredPairs is the maximum number of overlaps in the answer to a registration.
const answeredPairs = 20

// recordOverlaps replaces a commit's known overlaps with the ones found, and sets
// since when each exists. It sends events for overlaps that are new or have become
// worse: the strongest, at most answeredPairs. The others count as reported. It
// returns an earlier tip that the commit no longer overlaps with; 0 for none.
func (t *tx) recordOverlaps(
	d *deriver, own radarindex.Tip, result tipResult, known map[pairKey]pairRow,
) (lost int64, err error) {
	pairs, told := t.pairs(own, result.found, known, d.contract.Radar.Notify)
	if err := t.tellOverlaps(d.repo, own, told[:min(len(told), answeredPairs)]); err != nil {
		return 0, err
	}
	for _, p := range slices.SortedFunc(maps.Values(known), comparePairs) {
		if p.later == own.CommitID {
			lost = p.earlier
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
		} else if err := t.raise(d, p, own); err != nil {
			return 0, err
		}
	}
	_, err = t.Exec("UPDATE tips SET level = ?, truncated = ?, policy_version = ? WHERE commit_id = ?",
		strongest, result.more, d.repo.policyVersion, own.CommitID)
	if err != nil {
		return 0, fmt.Errorf("update tip: %w", err)
	}
	return lost, nil
}

// pairs turns the overlaps found into pairs, and removes them from known. It also
// returns the overlaps that events must report.
func (t *tx) pairs(
	own radarindex.Tip, list []found, known map[pairKey]pairRow, notify radar.Level,
) (pairs []pairRow, told []found) {
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
		p.told, p.since = before.told, cmp.Or(before.since, t.now)
		list[i].since = p.since
		if notify > radar.NoLevel && f.Level >= notify && f.Level > before.told {
			p.told = f.Level
			told = append(told, f)
		}
		pairs[i] = p
	}
	return pairs, told
}

// raise records an overlap whose later commit is the other one, and has that commit
// re-evaluated.
func (t *tx) raise(d *deriver, p pairRow, own radarindex.Tip) error {
	_, err := t.Exec("UPDATE tips SET level = ? WHERE commit_id = ? AND level < ?", p.level, p.later, p.level)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if d.contract.Radar.Blocks() {
		t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// dropPair forgets an overlap that is none any more.
func (t *tx) dropPair(d *deriver, p pairRow, own radarindex.Tip) error {
	if _, err := t.Exec("DELETE FROM overlaps WHERE later = ? AND earlier = ?", p.later, p.earlier); err != nil {
		return fmt.Errorf("delete overlap: %w", err)
	}
	if p.later != own.CommitID && d.contract.Radar.Blocks() && p.level >= d.contract.Radar.Block {
		t.addWork(ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA}, p.later)
	}
	return nil
}

// tellOverlaps appends the events of overlaps, each about the commit registered
// later.
func (t *tx) tellOverlaps(r repoRow, own radarindex.Tip, list []found) error {
	n := len(list)
	list = append(list[:n:n], found{Match: radarindex.Match{Tip: &own}})
	if err := t.addAuthors(list); err != nil {
		return err
	}
	mine := list[n]
	for _, f := range list[:n] {
		later, earlier, o := own, f, f.Overlap
		if f.Place > own.Place {
			later, earlier, o = *f.Tip, mine, o.Swap()
		}
		eventID, err := t.newID(eventPrefix)
		if err != nil {
			return err
		}
		_, err = t.append(r, ledger.EventRadar, eventID, ledger.Render(ledger.RadarEvent{
			ID: eventID, Org: r.org, Repo: r.name, Commit: later.SHA, Level: o.Level,
			Other: ledger.RadarOther{Commit: earlier.SHA, Branch: earlier.Branch, Author: earlier.author},
			Paths: ledger.EventPaths(o.Strongest()), PathsTotal: len(o.Paths), Timestamp: t.now,
		}))
		if err != nil {
			return err
		}
	}
	return nil
}
