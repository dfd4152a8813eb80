// Package radar is the algorithm of Conflict Radar. It tells from the change records
// of two commits, which hold no source code, whether git could merge the two, and
// how badly they overlap: a Radar makes a Footprint of each record, once, and Compare
// holds two of them against each other, as often as wanted.
package radar

import (
	"cmp"
	"slices"
	"strings"
)

// Options say what else is known of two records.
type Options struct {
	// Shared tells that the two commits have unmerged commits in common, so
	// that hunks which are the same in both are left out first.
	Shared bool
	// Only are the paths to compare, directories with a slash at their end; nil
	// compares all. Then the caller answers for what it names: files that the
	// two have in common count only where they are among these.
	Only []string
}

// Compare tells how two commits overlap. The ranges of its answer tell the first
// from the second; but for that, their order does not matter.
func Compare(commit, other *Footprint, o Options) Overlap {
	c := comparison{a: commit, b: other, shared: o.Shared}
	if o.Only == nil {
		c.everywhere()
	} else {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(o.Only))) {
			c.at(name)
		}
	}
	return c.overlap()
}

// A comparison is one under way.
type comparison struct {
	a, b   *Footprint
	shared bool
	common bool   // the two have a file in common
	files  []Path // above LOW
	dirs   []Path
}

// everywhere compares at all paths at which something may come of it.
func (c *comparison) everywhere() {
	small, large := c.a, c.b
	if len(small.touched) > len(large.touched) {
		small, large = large, small
	}
	for name := range small.touched {
		if _, both := large.touched[name]; both {
			c.at(name)
		}
	}
	for _, name := range c.a.made {
		if _, both := c.b.touched[name]; !both {
			c.at(name)
		}
	}
	for _, name := range c.b.made {
		if _, both := c.a.touched[name]; !both {
			c.at(name)
		}
	}
	if c.common || len(c.files) > 0 {
		return // siblings do not count any more
	}
	small, large = c.a, c.b
	if len(small.dirs) > len(large.dirs) {
		small, large = large, small
	}
	for dir := range small.dirs {
		c.at(dir)
	}
}

// at compares at one path, which is that of a directory where it ends in a slash.
func (c *comparison) at(name string) {
	if strings.HasSuffix(name, "/") {
		if c.a.dirs[name] && c.b.dirs[name] {
			c.dirs = append(c.dirs, Path{Path: name, Level: Low, Reason: SiblingFiles})
		}
		return
	}
	x, inA := c.a.touched[name]
	y, inB := c.b.touched[name]
	var f finding
	switch {
	case inA && inB:
		c.common = true
		f = compareTouches(x, y, c.shared)
	case inA && x.role == made && c.b.hasBelow(name), inB && y.role == made && c.a.hasBelow(name):
		f.reason = DirectoryFile
	}
	if f.reason != "" {
		ranges := Ranges{Commit: f.x, Other: f.y}
		c.files = append(c.files, Path{Path: name, Level: f.reason.Level(), Reason: f.reason, Ranges: ranges})
	}
}

// overlap returns what was found, the strongest first: siblings only where the
// two have no file in common.
func (c *comparison) overlap() Overlap {
	paths := c.files
	if !c.common && len(paths) == 0 {
		paths = c.dirs
	}
	if len(paths) == 0 {
		return Overlap{}
	}
	slices.SortFunc(paths, func(p, q Path) int {
		return cmp.Or(p.Reason.weight()-q.Reason.weight(), strings.Compare(p.Path, q.Path))
	})
	return Overlap{Level: paths[0].Level, Paths: paths}
}
