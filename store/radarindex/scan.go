package radarindex

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A Scan finds the overlaps of one commit with the tips in an index. It looks
// tips up by path: its cost depends on how many tips change the commit's paths,
// not on how many are in flight.
type Scan struct {
	// Own is the scanned commit as the tip that it is or would be. The caller may
	// replace it when the commit is registered.
	Own Tip
	// Footprint is the footprint of the scanned commit.
	Footprint *radar.Footprint

	// Matches lists the strongest overlaps, as Strongest returns them.
	Matches []Match
	// More reports whether there are, or may be, overlaps that Matches omits.
	More bool
	// Partial reports whether the scan skipped tips that may overlap: the index is
	// incomplete, or the scan reached one of its limits.
	Partial bool
	// Seq is the highest Seq that the index had seen when it was scanned.
	Seq int64

	index     *Index
	settings  conflicts.Settings
	blocking  bool // whether only overlaps that block the commit matter
	radar     *radar.Radar
	contained []string    // the tips that the commit's base contains
	oldest    ledger.Time // tips that came into flight earlier are too old
	seen      map[*entry]*candidate
}

// A candidate is a tip whose overlap with the commit may be above LOW.
type candidate struct {
	excluded bool    // the commit is not compared with this tip
	common   bool    // both change the same file, or overlap above LOW
	changes  []int32 // the tip's relevant changes, by index
}

// A Match is a tip that overlaps with the scanned commit, and their overlap as
// seen from that commit.
type Match struct {
	*Tip
	radar.Overlap
}

// Strongest sorts matches by level, highest first, and within a level by Place,
// latest first. It returns at most radar.MaxPairs of them, and reports whether
// there were more.
func Strongest(list []Match) (strongest []Match, more bool) {
	slices.SortFunc(list, func(a, b Match) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.Place, a.Place))
	})
	if len(list) > radar.MaxPairs {
		return list[:radar.MaxPairs], true
	}
	return list, false
}

// Scan scans the index for overlaps with the commit own, whose changes and
// contained tips are those of n.
func (x *Index) Scan(settings conflicts.Settings, own Tip, n ledger.Registration, now ledger.Time) *Scan {
	return x.scan(settings, own, n, now, false)
}

// ScanBlocking is like Scan, for the overlaps that block the commit: those with tips that came into flight
// before it, of the level settings.Block or above.
func (x *Index) ScanBlocking(settings conflicts.Settings, own Tip, n ledger.Registration, now ledger.Time) *Scan {
	return x.scan(settings, own, n, now, true)
}

func (x *Index) scan(
	settings conflicts.Settings, own Tip, n ledger.Registration, now ledger.Time, blocking bool,
) *Scan {
	radar := radar.New(settings.Ignore)
	s := &Scan{
		Own: own, Footprint: radar.Footprint(n.Changes),
		index: x, settings: settings, blocking: blocking, radar: radar, contained: n.Contained,
		oldest: settings.Oldest(now), seen: make(map[*entry]*candidate),
	}
	s.run()
	return s
}

// Index returns the index that was scanned.
func (s *Scan) Index() *Index { return s.index }

func (s *Scan) run() {
	s.index.view(s.gather)
	var list []Match
	for e, c := range s.seen {
		if c.excluded {
			continue
		}
		if m, overlaps := s.Compare(e.tip, s.radar.FootprintOfPacked(c.packed(e))); overlaps {
			c.common = true
			if !s.blocking || m.Level >= s.settings.Block {
				list = append(list, m)
			}
		}
	}

	if limit := radar.MaxPairs + 1 - len(list); limit > 0 && (!s.blocking || s.settings.Block <= radar.Low) {
		s.index.view(func() {
			s.Partial = s.Partial || s.index.incomplete()
			list = append(list, s.siblings(limit)...)
		})
	}
	s.Matches, s.More = Strongest(list)
	s.More = s.More || s.Partial
}

// packed returns the candidate's relevant changes.
func (c *candidate) packed(e *entry) []radar.PackedChange {
	slices.Sort(c.changes)
	c.changes = slices.Compact(c.changes) // a renamed file is listed once for each of its paths
	changes := make([]radar.PackedChange, len(c.changes))
	for i, at := range c.changes {
		changes[i] = change{e, at}.packed()
	}
	return changes
}

// Limits of one scan, in changes read.
const (
	maxBelow    = 10_000 // of files below a path at which the commit adds a file
	maxSiblings = 20_000 // of files in the directories that the commit changes
)

// gather collects the changes of other tips at the relevant paths. The caller
// holds the index's lock.
func (s *Scan) gather() {
	s.Seq, s.Partial = s.index.seq, s.index.incomplete()
	for _, path := range s.Footprint.Names() {
		for _, c := range s.index.changesAt(path) {
			s.add(c).common = true
		}
	}
	for _, path := range s.Footprint.Above() {
		for _, c := range s.index.changesAt(path) {
			s.add(c)
		}
	}

	budget := maxBelow
	for _, path := range s.Footprint.Added() {
		for c := range s.index.changesBelow(path) {
			if budget--; budget < 0 {
				s.Partial = true
				return
			}
			s.add(c)
		}
	}
}

// add adds one change to its tip's candidate.
func (s *Scan) add(change change) *candidate {
	c := s.seen[change.entry]
	if c == nil {
		c = &candidate{excluded: !s.Compares(change.entry.tip)}
		s.seen[change.entry] = c
	}
	if !c.excluded {
		c.changes = append(c.changes, change.i)
	}
	return c
}

// Compares reports whether the commit is compared with a tip. This is so for tips
// in flight, and for tips that were deployed or landed after the commit came into
// flight, unless the tip is too old, contained in the commit's base, of the same
// branch, or known to be an ancestor or a descendant of the commit. If only overlaps
// matter that block the commit, it is not compared with later tips.
func (s *Scan) Compares(t *Tip) bool {
	switch {
	case t.CommitID == s.Own.CommitID, t.OpenedAt < s.oldest, t.Flight >= Superseded:
		return false
	case s.blocking && t.Place > s.Own.Place:
		return false
	case t.Flight != InFlight && (t.Place > s.Own.Place || t.EndedAt <= s.Own.OpenedAt):
		return false
	}
	return !slices.Contains(s.contained, t.SHA) && !radar.Related(s.Own.Tip, t.Tip)
}

// siblings returns at most limit matches with tips that change other files of the
// same directories. The caller holds the index's lock.
func (s *Scan) siblings(limit int) (list []Match) {
	positions := make(map[*entry]int) // in list; -1 if the tip is not a sibling
	budget := maxSiblings

	for _, dir := range s.Footprint.Dirs() {
		path := radar.Path{Path: dir, Level: radar.Low, Reason: radar.SiblingFiles}
		for _, change := range s.index.changesIn(dir) {
			if budget--; budget < 0 {
				s.Partial = true
				return list
			}

			i, known := positions[change.entry]
			switch {
			case i < 0, known && list[i].Paths[len(list[i].Paths)-1].Path == dir, !s.isRelevant(change, dir):
			case known:
				list[i].Paths = append(list[i].Paths, path)
			case !s.mayBeSibling(change.entry):
				positions[change.entry] = -1
			default:
				positions[change.entry] = len(list)
				low := radar.Overlap{Level: radar.Low, Paths: []radar.Path{path}}
				list = append(list, Match{change.entry.tip, low})
			}
			if len(list) == limit {
				return list
			}
		}
	}
	return list
}

// mayBeSibling reports whether the commit is compared with a tip and changes none
// of the same files.
func (s *Scan) mayBeSibling(e *entry) bool {
	if c := s.seen[e]; c != nil {
		return !c.excluded && !c.common
	}
	return s.Compares(e.tip)
}

// isRelevant reports whether a change names a file in the directory dir that the
// radar does not ignore.
func (s *Scan) isRelevant(c change, dir string) bool {
	if len(s.settings.Ignore) == 0 {
		return true
	}
	path, oldPath := c.packed().Names()
	return dirOf(path) == dir && !s.radar.Ignores(path) || dirOf(oldPath) == dir && !s.radar.Ignores(oldPath)
}

// FootprintOf returns the footprint of changes under the settings of the scan.
func (s *Scan) FootprintOf(changes []radar.Change) *radar.Footprint {
	return s.radar.Footprint(changes)
}

// Compare compares the commit with a tip that has the given footprint, and
// reports whether they overlap.
func (s *Scan) Compare(t *Tip, footprint *radar.Footprint) (m Match, overlaps bool) {
	o := radar.Compare(s.Footprint, footprint, radar.Options{Shared: radar.SharesUnmerged(s.Own.Tip, t.Tip)})
	return Match{t, o}, o.Level > radar.NoLevel
}
