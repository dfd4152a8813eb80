// Package radar is the algorithm of Conflict Radar. From the change records of two
// commits, which contain no code but hunk headings, it computes whether git could merge the two, and
// how severely they overlap. A Radar turns each record into a Footprint once, and Compare
// compares two footprints.
package radar

import (
	"cmp"
	"slices"
	"strings"
)

// Options configures Compare.
type Options struct {
	// Shared reports whether the two commits have unmerged commits in common. If so,
	// hunks that are the same in both are ignored.
	Shared bool
	// Only limits the comparison to these paths; directories end in a slash. Nil compares
	// all. The caller must include the files that both change: they suppress sibling
	// files only if they are compared.
	Only []string
}

// Compare returns the overlap of two commits. It is symmetric, except that the ranges of
// the result distinguish the first commit from the second.
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

// A comparison is the state of Compare.
type comparison struct {
	a, b   *Footprint
	shared bool
	common bool   // both change a file
	files  []Path // above LOW
	dirs   []Path
}

// everywhere compares all paths that may overlap.
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

	for _, name := range c.a.added {
		if _, both := c.b.touched[name]; !both {
			c.at(name)
		}
	}
	for _, name := range c.b.added {
		if _, both := c.a.touched[name]; !both {
			c.at(name)
		}
	}
	if c.common || len(c.files) > 0 {
		return // sibling files no longer count
	}

	small, large = c.a, c.b
	if len(small.dirs) > len(large.dirs) {
		small, large = large, small
	}
	for dir := range small.dirs {
		c.at(dir)
	}
}

// at compares one path. If it ends in a slash, it is a directory.
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
	case inA && x.role == roleAdded && c.b.hasFilesBelow(name), inB && y.role == roleAdded && c.a.hasFilesBelow(name):
		f.reason = DirectoryFile
	}
	if f.reason != "" {
		ranges := Ranges{Commit: f.x, Other: f.y}
		c.files = append(c.files, Path{Path: name, Level: f.reason.Level(), Reason: f.reason, Ranges: ranges})
	}
}

// overlap returns the result, strongest path first. It includes sibling files only if the
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
