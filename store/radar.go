package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A prospect is a commit as the tip that it would be if it were registered now.
type prospect struct {
	commit       commitRow           // without an id where it is not known yet
	registration ledger.Registration // with what is known already
	tip          tipRow
}

func (s *Store) prospect(c *conn, r repoRow, settings ledger.RadarSettings, sha string, n ledger.Registration) (p prospect, err error) {
	p = prospect{registration: n, tip: tipRow{place: 1 << 62, openedAt: s.Now()}}
	p.commit, err = scanCommitRow(c.row(selectCommitRow+"WHERE repo_id = ? AND sha = ?", r.id, sha))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return p, fmt.Errorf("read commit: %w", err)
	}
	if err == nil {
		if p.registration, err = mergedRegistration(c, p.commit.id, n); err != nil {
			return p, err
		}
		tip, _, err := findTip(c, p.commit.id)
		if err != nil {
			return p, err
		}
		if tip.flies(settings, s.Now()) {
			p.tip = tip
		}
	}
	p.tip.Tip = tipOf(sha, p.registration)
	return p, nil
}

// An ahead is a scan that was done before its registration got to the writer,
// beside those of others: the writer has only to look at what came since.
type ahead struct {
	found []found
	more  bool
	// commit is the id of the commit; 0 where it was not known.
	commit        int64
	upTo          int64 // the last tip that it saw
	policyVersion int   // of the contract whose radar it was
}

// lookAhead scans for a registration. It answers nil where there is nothing to
// scan for.
func (s *Store) lookAhead(ctx context.Context, org, repo, sha string, n ledger.Registration) (a *ahead, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		contract, err := s.contract(c, r)
		if err != nil || !contract.Radar.Enabled {
			return err
		}
		p, err := s.prospect(c, r, contract.Radar, sha, n)
		if err != nil || p.tip.Branch == "" || len(p.registration.Changes) == 0 || p.commit.state == ledger.Deployed {
			return err
		}
		a = &ahead{commit: p.commit.id, policyVersion: r.policyVersion}
		if err := c.row("SELECT coalesce(max(seq), 0) FROM tips WHERE repo_id = ?", r.id).Scan(&a.upTo); err != nil {
			return fmt.Errorf("read tips: %w", err)
		}
		a.found, a.more, err = newScan(c, r, contract.Radar, p.tip, p.registration, s.Now()).run()
		return err
	})
	return a, err
}

func tipOf(sha string, n ledger.Registration) ledger.Tip {
	return ledger.Tip{SHA: sha, Branch: n.Branch, Base: n.Base, Parents: n.Parents, Ancestors: n.Ancestors}
}

// track makes a registered commit the tip of its branch, ends the tips that it
// replaces or holds, and has the radar look at it. A registration says something
// of the commit, of which more may be known.
func (t *tx) track(d deriver, c commitRow, said, known ledger.Registration, a *ahead) (list []found, more bool, err error) {
	if known.Branch == "" {
		return nil, false, nil
	}
	for _, sha := range said.Contained {
		if err := t.endTips(d, landed, "t.flight = ? AND t.commit_id = (SELECT id FROM commits WHERE repo_id = ? AND sha = ?) AND t.commit_id <> ?", inFlight, d.repo.id, sha, c.id); err != nil {
			return nil, false, err
		}
	}
	takes, err := t.takeBranch(d, c, said.Branch)
	if err != nil || !takes {
		return nil, false, err
	}
	return t.look(d, c, known, a)
}

// look has the radar look at a tip: it records and tells what it overlaps with.
func (t *tx) look(d deriver, c commitRow, n ledger.Registration, a *ahead) (list []found, more bool, err error) {
	footprint := d.contract.Radar.Radar().Footprint(n.Changes)
	own, before, err := t.openTip(d, c, tipOf(c.sha, n), footprint, n.Changes)
	if err != nil || own.flight != inFlight || !d.contract.Radar.Enabled {
		return nil, false, err
	}
	t.recent.add(own, footprint)
	if list, more, err = t.scan(d, own, before, n, a); err != nil {
		return nil, false, err
	}
	return list, more, t.recordOverlaps(d, own, list, more)
}

// scan finishes the scan that was done ahead, or does it whole where that was
// of something else: nothing was known of the commit, or less than now, or the
// contract was another one.
func (t *tx) scan(d deriver, own tipRow, before int64, n ledger.Registration, a *ahead) ([]found, bool, error) {
	scan := newScan(t.conn, d.repo, d.contract.Radar, own, n, t.now)
	if a == nil || a.policyVersion != d.repo.policyVersion || a.commit != 0 && before > a.upTo {
		return scan.run()
	}
	since, list, err := scan.newer(a.upTo, t.recent)
	if err != nil {
		return nil, false, err
	}
	still, err := scan.still(a.found)
	if err != nil {
		return nil, false, err
	}
	for _, f := range still {
		if !slices.Contains(since, f.commitID) {
			list = append(list, f)
		}
	}
	sortFound(list)
	if len(list) > ledger.MaxRadarPairs {
		return list[:ledger.MaxRadarPairs], true, nil
	}
	return list, a.more, nil
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

func scanPair(row scanner) (pairRow, error) {
	var p pairRow
	err := row.Scan(&p.later, &p.earlier, &p.level, &p.told, &p.since)
	return p, err
}

// recordOverlaps puts what was found in the place of what was known of the
// commit before, notes in it since when, and tells of what is new or has become
// worse: of the strongest, as many as the answer to a registration holds. The
// others count as told.
func (t *tx) recordOverlaps(d deriver, own tipRow, list []found, more bool) error {
	known, err := t.knownPairs(own.commitID)
	if err != nil {
		return err
	}
	var strongest ledger.Level
	saved := make([]pairRow, 0, len(list))
	var told []found
	for i, f := range list {
		p := pairRow{later: own.commitID, earlier: f.commitID, level: f.Level, path: f.Paths[0].Path, reason: f.Paths[0].Reason}
		if f.place > own.place {
			p.later, p.earlier = f.commitID, own.commitID
		} else {
			strongest = max(strongest, f.Level)
		}
		before := known[pairKey{p.later, p.earlier}]
		delete(known, pairKey{p.later, p.earlier})
		p.told, p.since = before.told, cmp.Or(before.since, t.now)
		list[i].since = p.since
		if notify := d.contract.Radar.Notify; notify > ledger.NoLevel && f.Level >= notify && f.Level > before.told {
			p.told = f.Level
			told = append(told, f)
		}
		saved = append(saved, p)
	}
	if err := t.tellOverlaps(d.repo, own, told[:min(len(told), answeredPairs)]); err != nil {
		return err
	}
	if err := t.savePairs(saved); err != nil {
		return err
	}
	for _, p := range saved {
		if p.later != own.commitID {
			if err := t.raise(d, p, own); err != nil {
				return err
			}
		}
	}
	for _, p := range known {
		if err := t.dropPair(d, p, own); err != nil {
			return err
		}
	}
	if _, err := t.exec("UPDATE tips SET level = ?, truncated = ? WHERE commit_id = ?", strongest, more, own.commitID); err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
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
	slices.SortFunc(pairs, func(a, b pairRow) int {
		return cmp.Or(cmp.Compare(a.later, b.later), cmp.Compare(a.earlier, b.earlier))
	})
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
func (t *tx) raise(d deriver, p pairRow, own tipRow) error {
	if _, err := t.exec("UPDATE tips SET level = max(level, ?) WHERE commit_id = ?", p.level, p.later); err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	if !d.contract.Radar.Blocks() {
		return nil
	}
	return t.resettle(d, p.later, ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA})
}

// dropPair forgets an overlap that is none any more.
func (t *tx) dropPair(d deriver, p pairRow, own tipRow) error {
	if _, err := t.exec("DELETE FROM overlaps WHERE later = ? AND earlier = ?", p.later, p.earlier); err != nil {
		return fmt.Errorf("delete overlap: %w", err)
	}
	if p.later == own.commitID || !d.contract.Radar.Blocks() || p.level < d.contract.Radar.Block {
		return nil
	}
	return t.resettle(d, p.later, ledger.Cause{Type: ledger.CauseRadar, ID: own.SHA})
}

// tellOverlaps appends the events of overlaps, each about the commit registered
// later.
func (t *tx) tellOverlaps(r repoRow, own tipRow, list []found) error {
	n := len(list)
	list = append(list[:n:n], found{tipRow: own})
	if err := addAuthors(t.conn, list); err != nil {
		return err
	}
	mine := list[n]
	events := make([]newEvent, n)
	for i, f := range list[:n] {
		later, earlier, o := own, f, f.Overlap
		if f.place > own.place {
			later, earlier, o = f.tipRow, mine, o.Swap()
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
WHERE o.later = ? AND o.level >= ? AND l.flight <= ? AND e.flight < ? AND e.place < l.place`, commitID, d.contract.Radar.Block, deployed, superseded)
	if err != nil {
		return nil, fmt.Errorf("read overlaps: %w", err)
	}
	return overlaps, nil
}

// deployTip takes a commit that was deployed out of flight.
func (t *tx) deployTip(commitID int64) error {
	_, err := t.exec("UPDATE tips SET flight = ?, ended_at = ? WHERE commit_id = ? AND flight = ?", deployed, t.now, commitID, inFlight)
	if err != nil {
		return fmt.Errorf("update tip: %w", err)
	}
	return nil
}

// returnTip takes a commit that was rolled back into flight again, and has the
// radar look at it: what came into flight meanwhile was not compared with it. It
// returns what may keep the commit from being PROMOTABLE.
func (t *tx) returnTip(d deriver, c commitRow) ([]ledger.OpenOverlap, error) {
	_, err := t.exec("UPDATE tips SET flight = ?, ended_at = 0 WHERE commit_id = ? AND flight = ?", inFlight, c.id, deployed)
	if err != nil {
		return nil, fmt.Errorf("update tip: %w", err)
	}
	tip, _, err := findTip(t.conn, c.id)
	if err != nil {
		return nil, err
	}
	if tip.flies(d.contract.Radar, t.now) {
		n, err := registrationOf(t.conn, c.id)
		if err != nil {
			return nil, err
		}
		c.state = ledger.Draft // any but DEPLOYED
		if _, _, err := t.look(d, c, n, nil); err != nil {
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
		return t.endTips(d, withdrawn, "t.commit_id = ? AND t.flight < ?", c.id, superseded)
	})
}
