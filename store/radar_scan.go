package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A scan finds what one commit overlaps with among the tips of its repo. It
// goes by path, so that its work follows the overlaps there are and not the
// tips in flight.
type scan struct {
	conn  *conn
	repo  repoRow
	radar *ledger.Radar
	// own is the commit as the tip that it is or would be.
	own       tipRow
	footprint *ledger.Footprint
	contained []string    // tips that its base holds
	oldest    ledger.Time // what came into flight before is too old

	seen map[int64]*candidate
}

// A candidate is a tip that the commit may overlap with.
type candidate struct {
	tipRow
	excluded bool
	changes  []ledger.Change
}

// A found is an overlap that a scan found, as the commit sees it.
type found struct {
	tipRow
	ledger.Overlap
	author ledger.Author // of the tip, where addAuthors has read it
	since  ledger.Time   // once it is recorded
}

// addAuthors adds the authors to what was found.
func addAuthors(c *conn, list []found) error {
	at := make(map[int64]int, len(list))
	ids := make([]int64, len(list))
	for i, f := range list {
		at[f.commitID], ids[i] = i, f.commitID
	}
	err := eachIn(c, func(row scanner) error {
		var id int64
		var author ledger.Author
		err := row.Scan(&id, &author.Name, &author.Email)
		list[at[id]].author = author
		return err
	}, "SELECT id, author_name, author_email FROM commits WHERE id IN ", ids)
	if err != nil {
		return fmt.Errorf("read authors: %w", err)
	}
	return nil
}

// newScan prepares a scan for a registration.
func newScan(c *conn, r repoRow, settings ledger.RadarSettings, own tipRow, n ledger.Registration, now ledger.Time) *scan {
	radar := settings.Radar()
	return &scan{
		conn: c, repo: r, radar: radar, own: own, footprint: radar.Footprint(n.Changes), contained: n.Contained,
		oldest: settings.Oldest(now), seen: make(map[int64]*candidate),
	}
}

// run returns the strongest overlaps, at most ledger.MaxRadarPairs, the
// strongest first, and whether there are more.
func (s *scan) run() (list []found, more bool, err error) {
	if err := s.gather(); err != nil {
		return nil, false, err
	}
	for _, c := range s.seen {
		if c.excluded {
			continue
		}
		if o := s.compare(c.tipRow, s.radar.Footprint(c.changes)); o.Level > ledger.NoLevel {
			list = append(list, found{tipRow: c.tipRow, Overlap: o})
		}
	}
	if len(list) <= ledger.MaxRadarPairs {
		siblings, err := s.siblings(ledger.MaxRadarPairs + 1 - len(list))
		if err != nil {
			return nil, false, err
		}
		list = append(list, siblings...)
	}
	sortFound(list)
	if len(list) > ledger.MaxRadarPairs {
		list, more = list[:ledger.MaxRadarPairs], true
	}
	return list, more, nil
}

// sortFound puts the strongest first, and of those alike what was registered last.
func sortFound(list []found) {
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.place, a.place))
	})
}

const (
	tipsAtPaths = "SELECT p.change, " + tipColumns + " FROM tip_paths p CROSS JOIN tips t ON t.commit_id = p.commit_id WHERE p.repo_id = ? AND p.path IN "
	tipsBelow   = "SELECT p.change, " + tipColumns + " FROM tip_paths p CROSS JOIN tips t ON t.commit_id = p.commit_id WHERE p.repo_id = ? AND p.path >= ? AND p.path < ? LIMIT 1000"
	tipsBeside  = "SELECT " + tipColumns + " FROM tip_dirs d CROSS JOIN tips t ON t.commit_id = d.commit_id WHERE d.repo_id = ? AND d.dir = ? AND d.commit_id < ? ORDER BY d.commit_id DESC LIMIT ?"
	newerTips   = "SELECT " + tipColumns + " FROM tips t WHERE t.repo_id = ? AND t.seq > ?"
	besideBatch = 64
)

// gather reads what other tips change at the paths that matter.
func (s *scan) gather() error {
	at := append(s.footprint.Names(), s.footprint.Above()...)
	slices.Sort(at)
	if err := eachIn(s.conn, s.take, tipsAtPaths, slices.Compact(at), s.repo.id); err != nil {
		return fmt.Errorf("read tips by path: %w", err)
	}
	for _, path := range s.footprint.Made() {
		// "0" comes right behind "/": the range holds what lies below the path.
		if err := s.conn.each(s.take, tipsBelow, s.repo.id, path+"/", path+"0"); err != nil {
			return fmt.Errorf("read tips below a path: %w", err)
		}
	}
	return nil
}

// take reads one change of a tip.
func (s *scan) take(row scanner) error {
	var bytes sql.RawBytes
	tip, err := scanTip(row, &bytes)
	if err != nil {
		return err
	}
	c := s.seen[tip.commitID]
	if c == nil {
		c = &candidate{tipRow: tip, excluded: !s.compares(tip)}
		s.seen[tip.commitID] = c
	}
	if c.excluded {
		return nil
	}
	change, err := readChange(bytes)
	if err != nil {
		return err
	}
	same := func(other ledger.Change) bool { return other.Path == change.Path && other.OldPath == change.OldPath }
	if !slices.ContainsFunc(c.changes, same) {
		c.changes = append(c.changes, change)
	}
	return nil
}

// compares tells whether the commit is compared with a tip: one in flight, or
// one that has landed since the commit itself came into flight.
func (s *scan) compares(t tipRow) bool {
	switch {
	case t.commitID == s.own.commitID, t.openedAt < s.oldest, t.flight >= superseded:
		return false
	case t.flight != inFlight && (t.place > s.own.place || t.endedAt <= s.own.openedAt):
		return false
	}
	return !slices.Contains(s.contained, t.SHA) && !ledger.Related(s.own.Tip, t.Tip)
}

// siblings returns overlaps with tips that change other files of the same
// directories, at most limit.
func (s *scan) siblings(limit int) (list []found, err error) {
	beside := make(map[int64]int) // commit id -> index in list
	for _, dir := range s.footprint.Dirs() {
		path := ledger.RadarPath{Path: dir, Level: ledger.Low, Reason: ledger.SiblingFiles}
		for before := int64(1 << 62); len(list) < limit; {
			tips, err := all(s.conn, func(row scanner) (tipRow, error) { return scanTip(row) }, tipsBeside, s.repo.id, dir, before, besideBatch)
			if err != nil {
				return nil, fmt.Errorf("read tips by directory: %w", err)
			}
			for _, t := range tips {
				before = t.commitID
				if i, known := beside[t.commitID]; known {
					list[i].Paths = append(list[i].Paths, path)
				} else if _, file := s.seen[t.commitID]; !file && s.compares(t) && len(list) < limit {
					beside[t.commitID] = len(list)
					list = append(list, found{tipRow: t, Overlap: ledger.Overlap{Level: ledger.Low, Paths: []ledger.RadarPath{path}}})
				}
			}
			if len(tips) < besideBatch {
				break
			}
		}
	}
	return list, nil
}

// newer returns the tips that were registered behind the given number, and what
// the commit overlaps with among them.
func (s *scan) newer(than int64, recent *recentTips) (since []int64, list []found, err error) {
	tips, err := all(s.conn, func(row scanner) (tipRow, error) { return scanTip(row) }, newerTips, s.repo.id, than)
	if err != nil {
		return nil, nil, fmt.Errorf("read newer tips: %w", err)
	}
	for _, tip := range tips {
		since = append(since, tip.commitID)
		if !s.compares(tip) {
			continue
		}
		footprint := recent.footprint(tip, s.repo.policyVersion)
		if footprint == nil {
			changes, err := findChanges(s.conn, tip.commitID)
			if err != nil {
				return nil, nil, err
			}
			footprint = s.radar.Footprint(changes)
		}
		if o := s.compare(tip, footprint); o.Level > ledger.NoLevel {
			list = append(list, found{tipRow: tip, Overlap: o})
		}
	}
	return since, list, nil
}

// still returns what was found and is as it was found: the tip is not gone, nor
// out of flight in a way that counts.
func (s *scan) still(list []found) ([]found, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(list))
	for i, f := range list {
		ids[i] = f.commitID
	}
	now := make(map[int64]tipRow, len(list))
	err := eachIn(s.conn, func(row scanner) error {
		var t tipRow
		err := row.Scan(&t.commitID, &t.flight, &t.endedAt)
		now[t.commitID] = t
		return err
	}, "SELECT commit_id, flight, ended_at FROM tips WHERE commit_id IN ", ids)
	if err != nil {
		return nil, fmt.Errorf("read tips found ahead: %w", err)
	}
	kept := make([]found, 0, len(list))
	for _, f := range list {
		f.flight, f.endedAt = now[f.commitID].flight, now[f.commitID].endedAt
		if f.flight != 0 && s.compares(f.tipRow) {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

func (s *scan) compare(t tipRow, footprint *ledger.Footprint) ledger.Overlap {
	return ledger.Compare(s.footprint, footprint, ledger.CompareOptions{Shared: ledger.SharesUnmerged(s.own.Tip, t.Tip)})
}

// recentTips remembers the footprints of the tips that this process registered
// last: those that registrations under way at the same time have to look at.
// The writer alone uses it.
type recentTips struct {
	tips [64]recentTip
	next int
}

// maxRecentNames bounds what is remembered of one tip.
const maxRecentNames = 1000

type recentTip struct {
	commitID, seq int64
	policyVersion int
	footprint     *ledger.Footprint
}

func (r *recentTips) add(t tipRow, footprint *ledger.Footprint) {
	if len(footprint.Names()) > maxRecentNames {
		return
	}
	r.tips[r.next%len(r.tips)] = recentTip{t.commitID, t.seq, t.policyVersion, footprint}
	r.next++
}

// footprint returns what is remembered of a tip under a contract; nil for
// nothing. The newest comes first: one before it may be of a write that failed,
// whose ids were given again.
func (r *recentTips) footprint(t tipRow, policyVersion int) *ledger.Footprint {
	for i := range r.tips {
		known := &r.tips[(r.next+2*len(r.tips)-1-i)%len(r.tips)]
		if known.commitID == t.commitID && known.seq == t.seq && known.policyVersion == policyVersion {
			return known.footprint
		}
	}
	return nil
}
