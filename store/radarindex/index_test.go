package radarindex

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// TestIndexFindsChanges adds and removes tips at random, and compares the lookups
// of the index with a search of all tips.
func TestIndexFindsChanges(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "d/e/f/g", "x/y/z", "old/a", "old/d", "old"}
	testenv.Check(t, func(t *rapid.T) {
		x, tips := newIndex(1), map[int64][]radar.Change{}

		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := rapid.Int64Range(1, 5).Draw(t, "tip")
				tips[id] = drawChanges(t, names)
				x.put(newEntry(Tip{CommitID: id}, tips[id]))
			},
			"remove": func(t *rapid.T) {
				id := rapid.Int64Range(1, 5).Draw(t, "tip")
				delete(tips, id)
				x.remove(x.entries[id])
			},
			"": func(t *rapid.T) {
				for _, name := range names {
					checkLookups(t, x, tips, name)
				}
				if len(tips) == 0 && (x.size != 0 || len(x.entries)+x.paths.Len()+len(x.dirs) != 0) {
					t.Errorf("empty index takes %d bytes and has %d paths and %d directories", x.size, x.paths.Len(), len(x.dirs))
				}
			},
		})
	})
}

func drawChanges(t *rapid.T, names []string) (changes []radar.Change) {
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID).Draw(t, "names") {
		status := rapid.SampledFrom([]string{"A", "M", "D", "R"}).Draw(t, "status")
		switch c := (radar.Change{Path: name, Status: status}); c.Status {
		case "R":
			c.OldPath = "old/" + name
			fallthrough
		default:
			changes = append(changes, c)
		}
	}
	return changes
}

// checkLookups compares the lookups of a path in the index with a search of tips.
func checkLookups(t *rapid.T, x *Index, tips map[int64][]radar.Change, name string) {
	at, below, in := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for id, changes := range tips {
		for _, c := range changes {
			for _, path := range []string{c.Path, c.OldPath} {
				at[id] = at[id] || path == name
				in[id] = in[id] || dirOf(path) == name+"/"
				below[id] = below[id] || strings.HasPrefix(path, name+"/")
			}
		}
	}

	for _, test := range []struct {
		lookup  string
		changes []change
		want    map[int64]bool
	}{
		{"changesAt", x.changesAt(name), at},
		{"changesBelow", slices.Collect(x.changesBelow(name)), below},
		{"changesIn", slices.Collect(values(x.changesIn(name + "/"))), in},
	} {
		got := map[int64]bool{}
		for _, c := range test.changes {
			got[c.entry.tip.CommitID] = true
		}
		maps.DeleteFunc(test.want, func(_ int64, matches bool) bool { return !matches })
		if !maps.Equal(got, test.want) {
			t.Errorf("%s(%s): got tips %v, want %v", test.lookup, name,
				slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(test.want)))
		}
	}
}

func values[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}
