package radar

import (
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A Radar creates footprints without the paths that a repo ignores. It is safe for
// concurrent use.
type Radar struct {
	globs  []string
	shapes []glob.Shape
}

// New returns a Radar that ignores the paths that match any of the globs.
func New(ignore []string) *Radar {
	r := &Radar{globs: ignore, shapes: make([]glob.Shape, len(ignore))}
	for i, g := range ignore {
		r.shapes[i] = glob.ShapeOf(g)
	}
	return r
}

// A Footprint is a change record, indexed for comparison with many others. It is immutable
// and safe for concurrent use.
type Footprint struct {
	// touched holds the change at each path of the record, including the old paths of
	// renames.
	touched map[string]touch
	added   []string // paths of new files
	present []string // sorted paths of files that exist after the change
	dirs    map[string]bool
}

// A touch is the change of a record at one path.
type touch struct {
	*file
	role role
}

// A role is the role of a path in a change.
type role uint8

const (
	roleModified role = iota // the file exists before and after
	roleRemoved              // deleted, or renamed to another path
	roleAdded                // new, or renamed from another path
)

// Footprint indexes a change record, or a part of one, for Compare. It omits ignored
// paths. If only one path of a renamed file is ignored, the file is still compared at the
// other one. If several changes have the same path, which CheckChanges refuses, Footprint
// uses the first.
func (r *Radar) Footprint(changes []Change) *Footprint {
	return r.footprint(len(changes), func(i int) *file { return newFile(&changes[i]) })
}

// FootprintOfPacked is like Footprint, for packed changes.
func (r *Radar) FootprintOfPacked(changes []PackedChange) *Footprint {
	return r.footprint(len(changes), func(i int) *file { return changes[i].unpack() })
}

func (r *Radar) footprint(n int, at func(i int) *file) *Footprint {
	f := &Footprint{touched: make(map[string]touch, n), dirs: map[string]bool{}}
	steps := glob.MaxMatching
	add := func(name string, c *file, as role) {
		if !r.ignores(name, &steps) {
			f.add(name, touch{c, as})
		}
	}

	for i := range n {
		switch c := at(i); c.status {
		case "A":
			add(c.path, c, roleAdded)
		case "D":
			add(c.path, c, roleRemoved)
		case "R":
			add(c.oldPath, c, roleRemoved)
			add(c.path, c, roleAdded)
		default:
			add(c.path, c, roleModified)
		}
	}
	slices.Sort(f.present)
	return f
}

func (f *Footprint) add(name string, t touch) {
	if _, exists := f.touched[name]; exists {
		return
	}
	f.touched[name] = t
	if t.role == roleAdded {
		f.added = append(f.added, name)
	}
	if t.role != roleRemoved {
		f.present = append(f.present, name)
	}
	if dir := name[:strings.LastIndexByte(name, '/')+1]; dir != "" {
		f.dirs[dir] = true
	}
}

// Ignores reports whether the Radar ignores a path. It takes at most as many steps as
// Footprint takes for a whole record. If that is not enough, the path is not ignored.
func (r *Radar) Ignores(name string) bool {
	steps := glob.MaxMatching
	return r.ignores(name, &steps)
}

// ignores is like Ignores, but within the remaining steps. It subtracts the cost of
// matching from them.
func (r *Radar) ignores(name string, steps *int) bool {
	for i, glob := range r.globs {
		may, cost := r.shapes[i].MayMatch(name)
		if *steps -= cost; *steps < 0 {
			return false
		}
		if may && doublestar.MatchUnvalidated(glob, name) {
			return true
		}
	}
	return false
}

// Names lists the paths in the record, including the old paths of renames. A record that
// overlaps with it above LOW has one of them, except for reason DirectoryFile.
func (f *Footprint) Names() []string { return slices.Sorted(maps.Keys(f.touched)) }

// Dirs lists the directories of the paths, except the repo's root. Each ends in a slash. A
// record that overlaps with it at LOW has one of them.
func (f *Footprint) Dirs() []string { return slices.Sorted(maps.Keys(f.dirs)) }

// Added lists the paths of new files. A record with files below one of them overlaps with
// it for reason DirectoryFile.
func (f *Footprint) Added() []string { return slices.Sorted(slices.Values(f.added)) }

// Above lists the directories above all files that exist after the change, without a
// trailing slash. A record that adds a file at one of them overlaps with it for reason
// DirectoryFile.
func (f *Footprint) Above() []string {
	above := map[string]bool{}
	for _, name := range f.present {
		for i := strings.LastIndexByte(name, '/'); i >= 0 && !above[name[:i]]; i = strings.LastIndexByte(name[:i], '/') {
			above[name[:i]] = true
		}
	}
	return slices.Sorted(maps.Keys(above))
}

// hasFilesBelow reports whether a file exists below the path after the change.
func (f *Footprint) hasFilesBelow(dir string) bool {
	dir += "/"
	i, _ := slices.BinarySearch(f.present, dir)
	return i < len(f.present) && strings.HasPrefix(f.present[i], dir)
}
