package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

func tipOf(sha string, n ledger.Registration) ledger.Tip {
	return ledger.Tip{SHA: sha, Branch: n.Branch, Base: n.Base, Parents: n.Parents, Ancestors: n.Ancestors}
}

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
func (t *tx) cause(c commitRow, r tipResult) (ledger.Cause, error) {
	cause := ledger.Cause{Type: ledger.CauseRadar, ID: c.sha}
	for _, f := range r.found {
		if f.Place < r.place {
			cause.ID = f.SHA
			return cause, nil
		}
	}
	lost, known, err := findTip(t.conn, r.lost)
	if known {
		cause.ID = lost.SHA
	}
	return cause, err
}

// blocked reports whether it overlaps with an earlier commit that blocks it.
func (r tipResult) blocked(settings ledger.RadarSettings) bool {
	return settings.Blocks() && slices.ContainsFunc(r.found, func(f found) bool { return f.Place < r.place && f.Level >= settings.Block })
}

// track makes a registered commit the tip of its branch, ends the tips that it
// replaces or holds, and has the radar look at it. A registration says something
// of the commit, of which more may be known.
func (t *tx) track(d deriver, c commitRow, said, known ledger.Registration, ahead *look) (tipResult, error) {
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
func (t *tx) lookAt(d deriver, own radarindex.Tip, n ledger.Registration, ahead *look) (tipResult, error) {
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
			ahead = lookIn(t.indexOf(d.repo.id), prospect{repo: d.repo, settings: d.contract.Radar, registration: n, tip: own}, t.now)
		}
		ahead.Own = own
		t.recent.Add(own, ahead.Footprint)
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
	return t.tips.Get(repoID)
}

// A pairRow is an overlap as the database keeps it.
type pairRow struct {
	later, earlier int64
	level, told    ledger.Level
	since          ledger.Time
	// path is the strongest, and reason why the two overlap there.
	path   string
	reason ledger.RadarReason
}

// other returns the other side.
func (p pairRow) other(commitID int64) int64 {
	if p.earlier == commitID {
		return p.later
	}
	return p.earlier
}

func scanPair(row scanner) (pairRow, error) {
	var p pairRow
	err := row.Scan(&p.later, &p.earlier, &p.level, &p.told, &p.since)
	return p, err
}

// recordOverlaps puts what was found in the place of what was known of the
// commit before, notes in it since when, and tells of what is new or has become
// worse: of the strongest, as many as the answer to a registration holds. The
// others count as told. It returns an earlier tip that it overlaps with no more;
// 0 for none.
func (t *tx) recordOverlaps(d deriver, own radarindex.Tip, result tipResult, known map[pairKey]pairRow) (lost int64, err error) {
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
	var strongest ledger.Level
	for _, p := range pairs {
		if p.later == own.CommitID {
			strongest = max(strongest, p.level)
		} else if err := t.raise(d, p, own); err != nil {
			return 0, err
		}
	}
	_, err = t.exec("UPDATE tips SET level = ?, truncated = ?, policy_version = ? WHERE commit_id = ?", strongest, result.more, d.repo.policyVersion, own.CommitID)
	if err != nil {
		return 0, fmt.Errorf("update tip: %w", err)
	}
	return lost, nil
}

// pairs makes pairs of what was found, and takes those that were known from
// known. It returns beside them what is to be told by events.
func (t *tx) pairs(own radarindex.Tip, list []found, known map[pairKey]pairRow, notify ledger.Level) (pairs []pairRow, told []found) {
	pairs = make([]pairRow, len(list))
	for i, f := range list {
		p := pairRow{later: own.CommitID, earlier: f.CommitID, level: f.Level, path: f.Paths[0].Path, reason: f.Paths[0].Reason}
		if f.Place > own.Place {
			p.later, p.earlier = f.CommitID, own.CommitID
		}
		before := known[pairKey{p.later, p.earlier}]
		delete(known, pairKey{p.later, p.earlier})
		p.told, p.since = before.told, cmp.Or(before.since, t.now)
		list[i].since = p.since
		if notify > ledger.NoLevel && f.Level >= notify && f.Level > before.told {
			p.told = f.Level
			told = append(told, f)
		}
		pairs[i] = p
	}
	return pairs, told
}

func comparePairs(a, b pairRow) int {
	return cmp.Or(cmp.Compare(a.later, b.later), cmp.Compare(a.earlier, b.earlier))
}

type pairKey struct{ later, earlier int64 }

// knownPairs reads the overlaps of a commit that are recorded.
func (t *tx) knownPairs(commitID int64) (map[pairKey]pairRow, error) {
	rows, err := all(t.conn, scanPair, "SELECT later, earlier, level, told, since FROM overlaps WHERE later = ?", commitID)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	asEarlier, err := all(t.conn, scanPair, "SELECT later, earlier, o.level, told, since "+withLater+"WHERE "+laterThan, commitID)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	rows = append(rows, asEarlier...)
	known := make(map[pairKey]pairRow, len(rows))
	for _, p := range rows {
		known[pairKey{p.later, p.earlier}] = p
	}
	return known, nil
}

// savePairs writes overlaps, in the order of their keys.
func (t *tx) savePairs(pairs []pairRow) error {
	slices.SortFunc(pairs, comparePairs)
	args := make([]any, 0, 7*len(pairs))
	for _, p := range pairs {
		args = append(args, p.later, p.earlier, p.level, p.told, p.since, p.path, p.reason)
	}
	if err := t.insertMany("INSERT OR REPLACE INTO overlaps (later, earlier, level, told, since, path, reason) VALUES ", 7, args); err != nil {
		return fmt.Errorf("insert overlaps: %w", err)
	}
	return nil
}

// raise notes an overlap with a commit that is the later of the two, and settles
// that one.
func (t *tx) raise(d deriver, p pairRow, own radarindex.Tip) error {
	if _, err := t.exec("UPDATE tips SET level = max(level, ?) WHERE commit_id = ?", p.level, p.later); err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if !d.contract.Radar.Blocks() {
		return nil
	}
	return t.resettle(d, p.later, ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA})
}

// dropPair forgets an overlap that is none any more.
func (t *tx) dropPair(d deriver, p pairRow, own radarindex.Tip) error {
	if _, err := t.exec("DELETE FROM overlaps WHERE later = ? AND earlier = ?", p.later, p.earlier); err != nil {
		return fmt.Errorf("delete overlap: %w", err)
	}
	if p.later == own.CommitID || !d.contract.Radar.Blocks() || p.level < d.contract.Radar.Block {
		return nil
	}
	return t.resettle(d, p.later, ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA})
}

// tellOverlaps appends the events of overlaps, each about the commit registered
// later.
func (t *tx) tellOverlaps(r repoRow, own radarindex.Tip, list []found) error {
	n := len(list)
	list = append(list[:n:n], found{Found: radarindex.Found{Tip: &own}})
	if err := addAuthors(t.conn, list); err != nil {
		return err
	}
	mine := list[n]
	events := make([]newEvent, n)
	for i, f := range list[:n] {
		later, earlier, o := own, f, f.Overlap
		if f.Place > own.Place {
			later, earlier, o = *f.Tip, mine, o.Swap()
		}
		eventID, err := t.ids.next(eventPrefix, t.now)
		if err != nil {
			return err
		}
		events[i] = newEvent{eventID, ledger.Render(ledger.RadarEvent{
			ID: eventID, Org: r.org, Repo: r.name, Commit: later.SHA, Level: o.Level,
			Other: ledger.RadarOther{Commit: earlier.SHA, Branch: earlier.Branch, Author: earlier.author},
			Paths: ledger.EventPaths(o.Strongest()), PathsTotal: len(o.Paths), Timestamp: t.now,
		})}
	}
	return t.appendMany(r, ledger.EventRadar, events)
}

// openOverlaps reads what may keep a commit from being PROMOTABLE, where the
// contract's radar blocks. Age is for the derivation to judge.
func (d deriver) openOverlaps(commitID int64) ([]ledger.OpenOverlap, error) {
	if !d.contract.Radar.Blocks() {
		return nil, nil
	}
	overlaps, err := all(d.conn, func(row scanner) (ledger.OpenOverlap, error) {
		var o ledger.OpenOverlap
		var opened ledger.Time
		err := row.Scan(&o.Level, &o.Commit, &o.Branch, &o.Path, &o.Reason, &opened)
		o.Until = opened.Add(time.Duration(d.contract.Radar.MaxAge))
		return o, err
	}, `
SELECT o.level, e.sha, e.branch, o.path, o.reason, min(l.opened_at, e.opened_at)
FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier
WHERE o.later = ? AND o.level >= ? AND l.flight <= ? AND e.flight < ? AND e.place < l.place`,
		commitID, d.contract.Radar.Block, radarindex.Deployed, radarindex.Superseded)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	return overlaps, nil
}

// deployTip takes a commit that was deployed out of flight.
func (t *tx) deployTip(commitID int64) error {
	_, err := t.exec("UPDATE tips SET flight = ?, ended_at = ?, "+renumber+" WHERE commit_id = ? AND flight = ?",
		radarindex.Deployed, t.now, commitID, radarindex.InFlight)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}

// returnTip takes a commit that was rolled back into flight again, and has the
// radar look at it: what came into flight meanwhile was not compared with it. It
// returns what may keep the commit from being PROMOTABLE.
func (t *tx) returnTip(d deriver, c commitRow) ([]ledger.OpenOverlap, error) {
	const restore = "UPDATE tips SET flight = ?, ended_at = 0, policy_version = 0, " + renumber +
		" WHERE commit_id = ? AND flight = ?"
	_, err := t.exec(restore, radarindex.InFlight, c.id, radarindex.Deployed)
	if err != nil {
		return nil, fmt.Errorf("update tip: %w", err)
	}
	tip, _, err := findTip(t.conn, c.id)
	if err != nil {
		return nil, err
	}
	if tip.Flies(d.contract.Radar, t.now) {
		n, err := registrationOf(t.conn, c.id)
		if err != nil {
			return nil, err
		}
		if _, err := t.lookAt(d, tip, n, nil); err != nil {
			return nil, err
		}
	}
	return d.openOverlaps(c.id)
}

// Withdraw takes a commit out of flight: its branch is given up. Where it is
// not in flight, nothing changes.
func (s *Store) Withdraw(ctx context.Context, org, repo, shaOrPrefix string) error {
	return s.write(ctx, func(t *tx) error {
		r, err := findRepo(t.conn, org, repo)
		if err != nil {
			return err
		}
		c, err := findCommit(t.conn, r, shaOrPrefix)
		if err != nil {
			return err
		}
		d, err := s.deriver(t.conn, r)
		if err != nil {
			return err
		}
		return t.endTips(d, radarindex.Withdrawn, "t.commit_id = ? AND t.flight < ?", c.id, radarindex.Superseded)
	})
}
