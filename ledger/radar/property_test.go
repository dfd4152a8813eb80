package radar

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// drawRecord returns a valid record for a few files, with a few new names and contents.
// There are so few of them that many records overlap.
func drawRecord(t *rapid.T) []Change {
	var changes []Change
	free := []string{"new", "d/new", "d/e", "a/x", "d/e/f/x"} // unused new names
	take := func() string {
		i := rapid.IntRange(0, len(free)-1).Draw(t, "new name")
		defer func() { free = slices.Delete(free, i, i+1) }()
		return free[i]
	}
	content := rapid.IntRange(1, 4)

	for _, path := range []string{"a", "b", "d/a", "d/b", "d/e/f/a"} {
		c := Change{Path: path, OldMode: "100644", Mode: "100644", OldBlob: blob(content.Draw(t, "old")),
			Blob: blob(content.Draw(t, "new"))}
		c.Binary = rapid.IntRange(0, 5).Draw(t, "binary") == 0
		switch c.Status = rapid.SampledFrom([]string{"", "", "A", "D", "M", "M", "M", "R", "R", "T"}).Draw(t,
			"status"); c.Status {
		case "":
			continue
		case "A":
			c.Path, c.OldMode, c.OldBlob = take(), "", ""
		case "D":
			c.Mode, c.Blob = "", ""
		case "T":
			c.Mode = "120000"
		case "R":
			c.OldPath, c.Path = path, take()
			fallthrough
		default:
			c.Mode = rapid.SampledFrom([]string{"100644", "100644", "100755"}).Draw(t, "mode")
			if !c.Binary && c.Blob != c.OldBlob {
				c.Hunks = drawHunks(t)
			}
		}
		changes = append(changes, c)
	}
	return changes
}

func drawHunks(t *rapid.T) (hunks []Hunk) {
	for end := 0; ; {
		h := Hunk{
			Start:    end + rapid.IntRange(2, 30).Draw(t, "start"),
			Lines:    rapid.IntRange(0, 3).Draw(t, "lines"),
			Added:    rapid.IntRange(1, 2).Draw(t, "added"),
			Text:     rapid.SampledFrom([]string{a1, b2}).Draw(t, "text"),
			Function: rapid.SampledFrom([]string{"", "f", "g", "h"}).Draw(t, "function"),
		}
		for range h.Lines + 1 {
			h.Near = append(h.Near, rapid.SampledFrom([]string{"", "", "", near1, a1}).Draw(t, "near"))
			h.Far = append(h.Far, rapid.SampledFrom([]string{"", "", far1, far2, b2, c3}).Draw(t, "far"))
		}
		hunks, end = append(hunks, h), h.Start+h.Lines
		if rapid.IntRange(0, 2).Draw(t, "more") == 0 {
			return hunks
		}
	}
}

func drawOptions(t *rapid.T) Options {
	return Options{Shared: rapid.Bool().Draw(t, "shared")}
}

func TestDrawnRecordsAreValid(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		if field, fault := CheckChanges(drawRecord(t)); fault != "" {
			t.Error(field, fault)
		}
	})
}

func TestCompareIsSymmetric(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		a, b, o := drawRecord(t), drawRecord(t), drawOptions(t)
		if got, want := compare(b, a, o).Swap(), compare(a, b, o); describe(got) != describe(want) {
			t.Errorf("got %s, swapped %s", describe(want), describe(got))
		}
	})
}

func TestPackedRecordsCompareTheSame(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		a, b, o := drawRecord(t), drawRecord(t), drawOptions(t)
		ignore := rapid.SampledFrom([]string{"", "d/**", "new"}).Draw(t, "ignored")
		if got, want := comparePacked(a, b, o, ignore), compare(a, b, o, ignore); describe(got) != describe(want) {
			t.Errorf("packed %s, want %s", describe(got), describe(want))
		}
	})
}

func TestRecordDoesNotOverlapItself(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		a := drawRecord(t)
		if o := compare(a, a, drawOptions(t)); o.Level != NoLevel || len(o.Paths) != 0 {
			t.Error(describe(o))
		}
	})
}

func TestLevelOfStrongestPath(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		o := compare(drawRecord(t), drawRecord(t), drawOptions(t))
		strongest := NoLevel
		for i, p := range o.Paths {
			strongest = max(strongest, p.Level)
			if p.Level != p.Reason.Level() || p.Level == NoLevel || i > 0 && p.Level > o.Paths[i-1].Level {
				t.Errorf("path %d in %s", i, describe(o))
			}
		}
		if o.Level != strongest {
			t.Error(describe(o))
		}
	})
}

// Ignoring a path removes its overlap, and that of a file with the directory of the path.
// All other overlaps above LOW remain.
func TestIgnoreRemovesOnlyThePath(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		a, b, o := drawRecord(t), drawRecord(t), drawOptions(t)
		path := rapid.SampledFrom(
			[]string{"a", "b", "d/a", "d/b", "d/e/f/a", "new", "d/new", "d/e", "a/x", "d/e/f/x"}).Draw(t, "ignored")
		others := func(paths []Path) (rest []Path) {
			for _, p := range paths {
				below := p.Reason == DirectoryFile && strings.HasPrefix(path, p.Path+"/")
				if p.Path != path && !below && p.Level > Low {
					rest = append(rest, p)
				}
			}
			return rest
		}

		all, some := compare(a, b, o), compare(a, b, o, path)
		if !reflect.DeepEqual(others(all.Paths), others(some.Paths)) {
			t.Errorf("with %s %s, without %s", path, describe(all), describe(some))
		}
		if slices.ContainsFunc(some.Paths, func(p Path) bool { return p.Path == path }) {
			t.Errorf("%s is ignored: %s", path, describe(some))
		}
	})
}

// Ignoring a path has the same effect as removing its change, unless the path belongs to
// a rename.
func TestIgnoreIsLikeRemovingTheChange(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		a, b, o := drawRecord(t), drawRecord(t), drawOptions(t)
		path := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "d/e/f/a", "new", "d/new", "d/e"}).Draw(t, "ignored")
		without := func(changes []Change) []Change {
			return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Path == path })
		}
		renames := func(c Change) bool { return c.Status == "R" && (c.Path == path || c.OldPath == path) }
		if slices.ContainsFunc(a, renames) || slices.ContainsFunc(b, renames) {
			t.Skip("a renamed file is still compared at its other path")
		}
		if got, want := compare(a, b, o, path), compare(without(a), without(b), o); describe(got) != describe(want) {
			t.Errorf("ignoring %s: %s, want %s", path, describe(got), describe(want))
		}
	})
}

// Looking up the paths that a footprint lists finds all overlaps.
func TestFootprintListsFindAllOverlaps(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		r, o := New(nil), drawOptions(t)
		a, b := r.Footprint(drawRecord(t)), r.Footprint(drawRecord(t))
		want := Compare(a, b, o)
		o.Only = slices.Concat(a.Names(), a.Dirs(), a.Added(), a.Above())
		if got := Compare(a, b, o); describe(got) != describe(want) {
			t.Errorf("with a's lists %s, want %s", describe(got), describe(want))
		}
	})
}
