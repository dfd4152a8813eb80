package store

import (
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
)

// TestTheIndexFindsWhatTipsChange puts tips into an index and takes them out
// again at random, and holds what it finds against a look at each.
func TestTheIndexFindsWhatTipsChange(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "d/e/f/g", "x/y/z", "old/a", "old/d", "old"}
	rapid.Check(t, func(t *rapid.T) {
		x, tips := newTipIndex(1), map[int64][]ledger.Change{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := rapid.Int64Range(1, 5).Draw(t, "tip")
				tips[id] = drawChanges(t, names)
				x.put(newIndexedTip(tipRow{commitID: id}, tips[id]))
			},
			"remove": func(t *rapid.T) {
				id := rapid.Int64Range(1, 5).Draw(t, "tip")
				delete(tips, id)
				x.remove(x.tips[id])
			},
			"": func(t *rapid.T) {
				for _, name := range names {
					checkFound(t, x, tips, name)
				}
				if len(tips) == 0 && (x.size != 0 || len(x.tips)+x.paths.Len()+len(x.dirs) != 0) {
					t.Errorf("an empty index takes %d bytes, with %d paths and %d directories", x.size, x.paths.Len(), len(x.dirs))
				}
			},
		})
	})
}

func drawChanges(t *rapid.T, names []string) (changes []ledger.Change) {
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID).Draw(t, "names") {
		switch c := (ledger.Change{Path: name, Status: rapid.SampledFrom([]string{"A", "M", "D", "R"}).Draw(t, "status")}); c.Status {
		case "R":
			c.OldPath = "old/" + name
			fallthrough
		default:
			changes = append(changes, c)
		}
	}
	return changes
}

func checkFound(t *rapid.T, x *tipIndex, tips map[int64][]ledger.Change, name string) {
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
		found []tipChange
		want  map[int64]bool
	}{
		{"at", x.at(name), at},
		{"below", slices.Collect(x.below(name)), below},
		{"in", slices.Collect(values(x.in(name + "/"))), in},
	} {
		found := map[int64]bool{}
		for _, c := range test.found {
			found[c.tip.row.commitID] = true
		}
		maps.DeleteFunc(test.want, func(_ int64, is bool) bool { return !is })
		if !maps.Equal(found, test.want) {
			t.Errorf("%s %s are %v, want %v", test.where, name, slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(test.want)))
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

// openAgain opens a database a second time, as another process does.
func openAgain(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// foreseen lists the branches that a commit of the file f would overlap with.
func foreseen(t *testing.T, s *Store, repo string) (branches []string, truncated bool) {
	t.Helper()
	result, err := s.Foresee(t.Context(), "acme", repo, ledger.RadarQuery{Registration: changesF("new")})
	check(t, err)
	for _, o := range result.Overlaps {
		branches = append(branches, o.Other.Branch)
	}
	return branches, result.Truncated
}

func TestTheRadarSeesWhatAnotherProcessDoes(t *testing.T) {
	s, push := openWithTips(t, Options{})
	other := openAgain(t, s.path(t), Options{})
	wantForeseen := func(want ...string) {
		t.Helper()
		if got, _ := foreseen(t, other, "api"); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	wantForeseen("three", "two", "one")
	push(numbered(5), "four")
	wantForeseen("four", "three", "two", "one")
	push(numbered(6), "two")
	wantForeseen("two", "four", "three", "one")
	check(t, s.Withdraw(t.Context(), "acme", "api", numbered(5)))
	wantForeseen("two", "three", "one")
	check(t, s.Withdraw(t.Context(), "acme", "api", numbered(0)))
	wantForeseen("two", "three")
}

// path is where the database is.
func (s *Store) path(t *testing.T) (path string) {
	t.Helper()
	check(t, s.read(t.Context(), func(c *conn) error {
		return c.row("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	}))
	return path
}

// TestWhereThereIsNoRoomTheLatestTipsAreCompared gives the radar less memory
// than the tips of two repos take.
func TestWhereThereIsNoRoomTheLatestTipsAreCompared(t *testing.T) {
	s := openAgain(t, filepath.Join(t.TempDir(), "ledger.db"), Options{RadarMemory: 20 * (tipSize + nameSize + 50)})
	_, err := s.CreateOrg(t.Context(), "acme")
	check(t, err)
	push := func(repo string, i int) ledger.Commit {
		t.Helper()
		c, _, err := s.Register(t.Context(), "acme", repo, numbered(i), changesF(fmt.Sprint("branch", i)))
		check(t, err)
		return c
	}
	const tips = 20
	wantLatest := func(repo string) {
		t.Helper()
		branches, truncated := foreseen(t, s, repo)
		if n := len(branches); n < 5 || n >= tips || branches[0] != fmt.Sprint("branch", tips-1) || !truncated {
			t.Errorf("%s: found %v, truncated %t", repo, branches, truncated)
		}
		if s.tips.size > s.tips.limit {
			t.Errorf("the indexes take %d bytes of %d", s.tips.size, s.tips.limit)
		}
	}
	for _, repo := range []string{"api", "web"} {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		check(t, err)
		for i := range tips {
			push(repo, i)
		}
	}
	for range 3 { // in turns, neither has to be read again
		wantLatest("api")
		wantLatest("web")
	}
	if len(s.tips.repos) != 2 {
		t.Errorf("%d repos have an index, want both", len(s.tips.repos))
	}

	c := push("web", tips)
	if !c.OverlapsTruncated || !c.Radar.Truncated {
		t.Errorf("the answer to a registration does not say that there may be more: %+v", c.Radar)
	}
	for i := range tips - 3 {
		check(t, s.Withdraw(t.Context(), "acme", "web", numbered(tips-i)))
	}
	foreseen(t, s, "web") // finds that there is room again
	if branches, truncated := foreseen(t, s, "web"); len(branches) != 4 || truncated {
		t.Errorf("found %v, truncated %t; want all that are left", branches, truncated)
	}
}

// A tip that would take most of the room is left out, and not all others for it.
func TestATipThatIsTooLargeIsLeftOutAlone(t *testing.T) {
	s, push := openWithTips(t, Options{RadarMemory: 8000})
	large := changesF("large")
	for i := range 20 {
		large.Changes = append(large.Changes, ledger.Change{Path: fmt.Sprint("file", i), Status: "M"})
	}
	_, _, err := s.Register(t.Context(), "acme", "api", numbered(7), large)
	check(t, err)
	for range 2 {
		branches, truncated := foreseen(t, s, "api")
		if !slices.Equal(branches, []string{"three", "two", "one"}) || !truncated {
			t.Errorf("found %q, truncated %t", branches, truncated)
		}
	}
	again := openAgain(t, s.path(t), Options{RadarMemory: 8000})
	if branches, truncated := foreseen(t, again, "api"); len(branches) != 3 || !truncated {
		t.Errorf("after a restart found %q, truncated %t", branches, truncated)
	}
	push(numbered(7), "large") // without all that, it is as any other
	if branches, truncated := foreseen(t, s, "api"); len(branches) != 4 || truncated {
		t.Errorf("found %q, truncated %t", branches, truncated)
	}
}

// What is left out stays as it was found: a commit that is registered again is
// still blocked by it.
func TestWhatIsLeftOutOfTheIndexStillBlocks(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	open := func() int {
		t.Helper()
		list, err := s.Overlaps(t.Context(), "acme", "api", RadarFilter{Query: Query{Limit: 10}, Commit: numbered(2)})
		check(t, err)
		return len(list.Data)
	}
	s.tips.of(1).shrink(0)
	c, _, err := s.Register(t.Context(), "acme", "api", numbered(2), changesF("three"))
	check(t, err)
	if n := open(); n != 2 || len(c.Radar.Overlaps) != 2 || c.Overlaps["MEDIUM"] != 2 {
		t.Errorf("%d are open, want 2; the answer tells of %d and counts %v", n, len(c.Radar.Overlaps), c.Overlaps)
	}
	_, _, err = s.Register(t.Context(), "acme", "api", numbered(2), ledger.Registration{Branch: "three", Changes: []ledger.Change{{Path: "other", Status: "M"}}})
	check(t, err)
	if n := open(); n != 0 {
		t.Errorf("%d are open of a commit that changes another file now", n)
	}
}

// Many repos share what room there is: of each the latest tips stay.
func TestReposShareTheRoom(t *testing.T) {
	const repos, tips = 20, 8
	set := newTipIndexSet(repos * tips * (tipSize + nameSize) / 2)
	for i := range tips {
		for repo := range int64(repos) {
			x := set.of(repo)
			x.put(newIndexedTip(tipRow{commitID: int64(i), place: int64(i)}, changesF("").Changes))
			set.fit(x)
		}
	}
	for repo, x := range set.repos {
		if x.tips[tips-1] == nil || x.tips[0] != nil || !x.leavesOut() {
			t.Errorf("repo %d: %d tips are left", repo, len(x.tips))
		}
	}
	if set.size > set.limit || len(set.repos) != repos {
		t.Errorf("%d repos take %d bytes of %d", len(set.repos), set.size, set.limit)
	}
}

// An index that was not asked for while more came than it has room for is made
// anew, of the latest.
func TestAnIndexCatchesUpWithMoreThanItHasRoomFor(t *testing.T) {
	o := Options{RadarMemory: 20 * (tipSize + nameSize)}
	s, push := openWithTips(t, Options{})
	other := openAgain(t, s.path(t), o)
	if branches, _ := foreseen(t, other, "api"); len(branches) != 3 {
		t.Fatalf("found %q", branches)
	}
	for i := range 60 {
		push(numbered(10+i), fmt.Sprint("branch", i))
	}
	branches, truncated := foreseen(t, other, "api")
	if n := len(branches); n < 5 || n > 20 || branches[0] != "branch59" || !truncated {
		t.Errorf("found %q, truncated %t", branches, truncated)
	}
	if other.tips.size > other.tips.limit {
		t.Errorf("the index takes %d bytes of %d", other.tips.size, other.tips.limit)
	}
}
