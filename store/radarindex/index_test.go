package radarindex

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// TestTheIndexFindsWhatTipsChange adds and removes tips at random, and compares
// the index's answers with a search of every tip.
func TestTheIndexFindsWhatTipsChange(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "d/e/f/g", "x/y/z", "old/a", "old/d", "old"}
	rapid.Check(t, func(t *rapid.T) {
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
					checkFound(t, x, tips, name)
				}
				if len(tips) == 0 && (x.size != 0 || len(x.entries)+x.paths.Len()+len(x.dirs) != 0) {
					t.Errorf("an empty index takes %d bytes, with %d paths and %d directories", x.size, x.paths.Len(), len(x.dirs))
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

func checkFound(t *rapid.T, x *Index, tips map[int64][]radar.Change, name string) {
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
		where string
		found []change
		want  map[int64]bool
	}{
		{"at", x.at(name), at},
		{"below", slices.Collect(x.below(name)), below},
		{"in", slices.Collect(values(x.in(name + "/"))), in},
	} {
		found := map[int64]bool{}
		for _, c := range test.found {
			found[c.entry.tip.CommitID] = true
		}
		maps.DeleteFunc(test.want, func(_ int64, is bool) bool { return !is })
		if !maps.Equal(found, test.want) {
			t.Errorf("%s %s are %v, want %v", test.where, name,
				slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(test.want)))
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
