package radar

import (
	"maps"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A Radar makes footprints without the paths that a repo ignores. It may be used by
// several goroutines at once.
type Radar struct {
	globs  []string
	shapes []glob.Shape
}

// New returns a radar that leaves out the paths which one of the globs
// matches.
func New(ignore []string) *Radar {
	r := &Radar{globs: ignore, shapes: make([]glob.Shape, len(ignore))}
	for i, g := range ignore {
		r.shapes[i] = glob.ShapeOf(g)
	}
	return r
}

// A Footprint is a change record made ready to be compared with many others.
// It does not change any more, and may be used by several goroutines at once.
type Footprint struct {
	// touched tells what is done at each path that the record names, old names
	// of renamed files too.
	touched map[string]touch
	made    []string // paths of files that were not there before
	present []string // paths of files that are there afterwards, in order
	dirs    map[string]bool
}

// A touch is what a record does at one path.
type touch struct {
	*file
	role role
}

// A role is what a path is to a change.
type role uint8

const (
	kept role = iota // its file is there before and after
	gone             // deleted, or renamed to another path
	made             // new, or renamed from another path
)

// Footprint makes a change record, or part of one, ready for Compare. Names that
// the settings ignore are left out: where a renamed file has one name that is
// ignored, it is still compared by its other one. Of changes that name one path,
// which CheckChanges refuses, the first counts.
func (r *Radar) Footprint(changes []Change) *Footprint {
	return r.footprint(len(changes), func(i int) *file { return newFile(&changes[i]) })
}

// FootprintOfPacked is Footprint of changes that were packed.
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
			add(c.path, c, made)
		case "D":
			add(c.path, c, gone)
		case "R":
			add(c.oldPath, c, gone)
			add(c.path, c, made)
		default:
			add(c.path, c, kept)
		}
	}
	slices.Sort(f.present)
	return f
}

func (f *Footprint) add(name string, t touch) {
	if _, twice := f.touched[name]; twice {
		return
	}
	f.touched[name] = t
	if t.role == made {
		f.made = append(f.made, name)
	}
	if t.role != gone {
		f.present = append(f.present, name)
	}
	if dir := name[:strings.LastIndexByte(name, '/')+1]; dir != "" {
		f.dirs[dir] = true
	}
}

// Ignores reports whether the settings leave a path out. Matching it takes at most
// as many steps as Footprint takes for a whole record; a path that they do not
// suffice for is not left out.
func (r *Radar) Ignores(name string) bool {
	steps := glob.MaxMatching
	return r.ignores(name, &steps)
}

// ignores is Ignores within the steps that are left, from which it takes those
// that matching may cost.
func (r *Radar) ignores(name string, steps *int) bool {
	for i, glob := range r.globs {
		may := r.shapes[i].MayMatch(name)
		if *steps -= r.shapes[i].Cost(name, may); *steps < 0 {
			return false
		}
		if may && doublestar.MatchUnvalidated(glob, name) {
			return true
		}
	}
	return false
}

// Names lists the paths that the record names, old names of renamed files too:
// what overlaps with it above LOW names one of them, but for DirectoryFile.
func (f *Footprint) Names() []string { return slices.Sorted(maps.Keys(f.touched)) }

// Dirs lists the directories of these but the repo's root, each with a slash at
// its end: what overlaps with it at LOW has one of them.
func (f *Footprint) Dirs() []string { return slices.Sorted(maps.Keys(f.dirs)) }

// Made lists those of the names where no file was before. What has files below
// one of them overlaps with it for DirectoryFile.
func (f *Footprint) Made() []string { return slices.Sorted(slices.Values(f.made)) }

// Above lists the directories, without a slash at the end, above all files that
// are there after the change. What makes a file of one of them overlaps with it
// for DirectoryFile.
func (f *Footprint) Above() []string {
	above := map[string]bool{}
	for _, name := range f.present {
		for i := strings.LastIndexByte(name, '/'); i >= 0 && !above[name[:i]]; i = strings.LastIndexByte(name[:i], '/') {
			above[name[:i]] = true
		}
	}
	return slices.Sorted(maps.Keys(above))
}

// hasBelow reports whether there is a file below that path after the change.
func (f *Footprint) hasBelow(dir string) bool {
	dir += "/"
	i, _ := slices.BinarySearch(f.present, dir)
	return i < len(f.present) && strings.HasPrefix(f.present[i], dir)
}
