package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A scan finds what one commit overlaps with among the tips of its repo that an
// index holds. It goes by path, so that its work follows what others change at
// the paths of the commit and not the tips in flight.
type scan struct {
	index    *tipIndex
	settings ledger.RadarSettings
	radar    *ledger.Radar
	// own is the commit as the tip that it is or would be.
	own       tipRow
	footprint *ledger.Footprint
	contained []string    // tips that its base holds
	oldest    ledger.Time // what came into flight before is too old

	// upTo is the number of the last tip that the index had seen.
	upTo int64
	// partial tells that not all was looked at.
	partial bool
	seen    map[*indexedTip]*candidate
}

// A candidate is a tip that the commit may overlap with above LOW.
type candidate struct {
	excluded bool    // it is not compared with the commit
	common   bool    // both change some file
	changes  []int32 // of the tip, that matter
}

// A found is an overlap that a scan found, as the commit sees it.
type found struct {
	*tipRow
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
	err := c.eachIn(func(row scanner) error {
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
func newScan(index *tipIndex, settings ledger.RadarSettings, own tipRow, n ledger.Registration, now ledger.Time) *scan {
	radar := settings.Radar()
	return &scan{
		index: index, settings: settings, radar: radar, own: own, footprint: radar.Footprint(n.Changes), contained: n.Contained,
		oldest: settings.Oldest(now), seen: make(map[*indexedTip]*candidate),
	}
}

// run returns the strongest overlaps, at most ledger.MaxRadarPairs, the
// strongest first, and whether there are more, or may be.
func (s *scan) run() (list []found, more bool) {
	s.index.view(s.gather)
	for tip, c := range s.seen {
		if c.excluded {
			continue
		}
		if o := s.compare(tip.row, s.radar.FootprintOfPacked(c.packed(tip))); o.Level > ledger.NoLevel {
			c.common = true
			list = append(list, found{tipRow: tip.row, Overlap: o})
		}
	}
	if limit := ledger.MaxRadarPairs + 1 - len(list); limit > 0 {
		s.index.view(func() {
			s.partial = s.partial || s.index.leavesOut()
			list = append(list, s.siblings(limit)...)
		})
	}
	sortFound(list)
	if len(list) > ledger.MaxRadarPairs {
		return list[:ledger.MaxRadarPairs], true
	}
	return list, s.partial
}

func (c *candidate) packed(tip *indexedTip) []ledger.PackedChange {
	slices.Sort(c.changes)
	c.changes = slices.Compact(c.changes) // a renamed file is there by both its names
	changes := make([]ledger.PackedChange, len(c.changes))
	for i, at := range c.changes {
		changes[i] = tipChange{tip, at}.packed()
	}
	return changes
}

// sortFound puts the strongest first, and of those alike what was registered last.
func sortFound(list []found) {
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.place, a.place))
	})
}

// The most that one scan looks at of what is below the files that the commit
// makes, and of what is beside those that it changes.
const (
	maxBelow  = 10_000
	maxBeside = 20_000
)

// gather notes what other tips change at the paths that matter.
func (s *scan) gather() {
	s.upTo, s.partial = s.index.seq, s.index.leavesOut()
	for _, path := range s.footprint.Names() {
		for _, c := range s.index.at(path) {
			s.take(c).common = true
		}
	}
	for _, path := range s.footprint.Above() {
		for _, c := range s.index.at(path) {
			s.take(c)
		}
	}
	left := maxBelow
	for _, path := range s.footprint.Made() {
		for c := range s.index.below(path) {
			if left--; left < 0 {
				s.partial = true
				return
			}
			s.take(c)
		}
	}
}

// take notes one change of a tip.
func (s *scan) take(change tipChange) *candidate {
	c := s.seen[change.tip]
	if c == nil {
		c = &candidate{excluded: !s.compares(change.tip.row)}
		s.seen[change.tip] = c
	}
	if !c.excluded {
		c.changes = append(c.changes, change.i)
	}
	return c
}

// compares tells whether the commit is compared with a tip: one in flight, or
// one that has landed since the commit itself came into flight.
func (s *scan) compares(t *tipRow) bool {
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
func (s *scan) siblings(limit int) (list []found) {
	beside := make(map[*indexedTip]int) // index in list; -1 for none
	left := maxBeside
	for _, dir := range s.footprint.Dirs() {
		path := ledger.RadarPath{Path: dir, Level: ledger.Low, Reason: ledger.SiblingFiles}
		for _, change := range s.index.in(dir) {
			if left--; left < 0 {
				s.partial = true
				return list
			}
			i, known := beside[change.tip]
			switch {
			case i < 0, known && list[i].Paths[len(list[i].Paths)-1].Path == dir, !s.sees(change, dir):
			case known:
				list[i].Paths = append(list[i].Paths, path)
			case !s.mayStandBeside(change.tip):
				beside[change.tip] = -1
			default:
				beside[change.tip] = len(list)
				list = append(list, found{tipRow: change.tip.row, Overlap: ledger.Overlap{Level: ledger.Low, Paths: []ledger.RadarPath{path}}})
			}
			if len(list) == limit {
				return list
			}
		}
	}
	return list
}

// mayStandBeside reports whether a tip is compared with the commit and changes
// no file that it changes.
func (s *scan) mayStandBeside(t *indexedTip) bool {
	if c := s.seen[t]; c != nil {
		return !c.excluded && !c.common
	}
	return s.compares(t.row)
}

// sees reports whether a change names a file of that directory that the radar
// does not ignore.
func (s *scan) sees(c tipChange, dir string) bool {
	if len(s.settings.Ignore) == 0 {
		return true
	}
	path, oldPath := c.packed().Names()
	return dirOf(path) == dir && !s.radar.Ignores(path) || dirOf(oldPath) == dir && !s.radar.Ignores(oldPath)
}

// newer returns the tips of which something has changed since the index had seen
// all, and what the commit overlaps with among them.
func (s *scan) newer(c *conn, policyVersion int, recent *recentTips) (since []int64, list []found, err error) {
	query, args := newerTips, []any{s.index.repoID, s.upTo}
	if s.upTo == 0 { // what has ended was never found
		query, args = liveTips, args[:1]
	}
	tips, err := all(c, scanTip, query, args...)
	if err != nil {
		return nil, nil, fmt.Errorf("read newer tips: %w", err)
	}
	for i := range tips {
		tip := &tips[i]
		since = append(since, tip.commitID)
		if !s.compares(tip) {
			continue
		}
		footprint := recent.footprint(tip, policyVersion)
		if footprint == nil {
			changes, err := findChanges(c, tip.commitID)
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

func (s *scan) compare(t *tipRow, footprint *ledger.Footprint) ledger.Overlap {
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
// nothing.
func (r *recentTips) footprint(t *tipRow, policyVersion int) *ledger.Footprint {
	for i := range r.tips {
		known := &r.tips[i]
		if known.commitID == t.commitID && known.seq == t.seq && known.policyVersion == policyVersion {
			return known.footprint
		}
	}
	return nil
}
