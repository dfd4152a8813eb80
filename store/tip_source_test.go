package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// sizeOfTip is the approximate size in bytes of a tip with one short path in an index.
const sizeOfTip = 720

// openAgain opens a database a second time, like another process.
func openAgain(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// preview returns the branches that a commit which changes the file f would overlap with.
func preview(t *testing.T, s *Store, repo string) (branches []string, truncated bool) {
	t.Helper()
	result, err := s.PreviewOverlaps(t.Context(), "acme", repo, ledger.RadarQuery{Registration: changesF("new")})
	must.OK(t, err)
	for _, o := range result.Overlaps {
		branches = append(branches, o.Other.Branch)
	}
	return branches, result.Truncated
}

func TestRadarSeesChangesOfOtherProcesses(t *testing.T) {
	s, push := openWithTips(t, Options{})
	other := openAgain(t, s.path(t), Options{})
	wantPreview := func(want ...string) {
		t.Helper()
		if got, _ := preview(t, other, "api"); !slices.Equal(got, want) {
			t.Errorf("overlaps with %q, want %q", got, want)
		}
	}
	wantPreview("three", "two", "one")
	push(numbered(5), "four")
	wantPreview("four", "three", "two", "one")
	push(numbered(6), "two")
	wantPreview("two", "four", "three", "one")
	must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(5)))
	wantPreview("two", "three", "one")
	must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(0)))
	wantPreview("two", "three")
}

// path returns the path of the database.
func (s *Store) path(t *testing.T) string {
	t.Helper()
	path, err := txn.Read(t.Context(), s.db, txn.ByOrg(""), func(rd txn.Reader) (path string, err error) {
		return path, rd.Row("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	})
	must.OK(t, err)
	return path
}

// TestRadarMemoryLimitKeepsLatestTips gives the radar less memory than the tips of two
// repos need.
func TestRadarMemoryLimitKeepsLatestTips(t *testing.T) {
	s := openAgain(t, NewFile(t), Options{RadarMemory: 20 * (sizeOfTip + 50)})
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	push := func(repo string, i int) ledger.Commit {
		t.Helper()
		c, _, err := s.Register(t.Context(), "acme", repo, numbered(i), changesF(fmt.Sprint("branch", i)))
		must.OK(t, err)
		return c
	}

	const tips = 20
	wantLatest := func(repo string) {
		t.Helper()
		branches, truncated := preview(t, s, repo)
		if n := len(branches); n < 5 || n >= tips || branches[0] != fmt.Sprint("branch", tips-1) || !truncated {
			t.Errorf("%s: overlaps with %v, truncated %t; want the latest, truncated", repo, branches, truncated)
		}
	}

	for _, repo := range []string{"api", "web"} {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: repo}, "host")
		must.OK(t, err)
		for i := range tips {
			push(repo, i)
		}
	}
	for range 3 { // alternating: no index evicts the other
		wantLatest("api")
		wantLatest("web")
	}

	c := push("web", tips)
	if !c.OverlapsTruncated || !c.Radar.Truncated {
		t.Errorf("result of a registration is not truncated: %+v", c.Radar)
	}

	for i := range tips - 3 {
		must.OK(t, s.Withdraw(t.Context(), "acme", "web", numbered(tips-i)))
	}
	preview(t, s, "web") // notices that there is space again
	if branches, truncated := preview(t, s, "web"); len(branches) != 4 || truncated {
		t.Errorf("after withdrawals: overlaps with %v, truncated %t; want 4 branches, not truncated", branches, truncated)
	}
}

// A tip that needs most of the memory is not indexed. All other tips are.
func TestTooLargeTipIsNotIndexed(t *testing.T) {
	s, push := openWithTips(t, Options{RadarMemory: 8000})
	large := changesF("large")
	for i := range 20 {
		large.Changes = append(large.Changes, radar.Change{Path: fmt.Sprint("file", i), Status: "M"})
	}
	_, _, err := s.Register(t.Context(), "acme", "api", numbered(7), large)
	must.OK(t, err)

	for range 2 {
		branches, truncated := preview(t, s, "api")
		if !slices.Equal(branches, []string{"three", "two", "one"}) || !truncated {
			t.Errorf("overlaps with %q, truncated %t; want the other branches, truncated", branches, truncated)
		}
	}

	again := openAgain(t, s.path(t), Options{RadarMemory: 8000})
	if branches, truncated := preview(t, again, "api"); len(branches) != 3 || !truncated {
		t.Errorf("after a restart: overlaps with %q, truncated %t; want 3 branches, truncated", branches, truncated)
	}

	push(numbered(7), "large") // now with a small change record
	if branches, truncated := preview(t, s, "api"); len(branches) != 4 || truncated {
		t.Errorf("with a small change record: overlaps with %q, truncated %t; want 4 branches, not truncated",
			branches, truncated)
	}
}

// The known overlaps with tips that are not indexed stay open if the commit is registered
// again.
func TestKnownOverlapsOfUnindexedTipsStayOpen(t *testing.T) {
	first, _ := openWithTips(t, Options{})
	s := openAgain(t, first.path(t), Options{RadarMemory: 1}) // no tip is indexed
	open := func() int {
		t.Helper()
		list, err := s.Overlaps(t.Context(), "acme", "api", overlaps.RadarFilter{Query: txn.Query{Limit: 10},
			Commit: numbered(2)})
		must.OK(t, err)
		return len(list.Data)
	}

	c, _, err := s.Register(t.Context(), "acme", "api", numbered(2), changesF("three"))
	must.OK(t, err)
	if n := open(); n != 2 || len(c.Radar.Overlaps) != 2 || c.Overlaps["MEDIUM"] != 2 {
		t.Errorf("%d open overlaps, want 2; the registration returned %d and the counts %v",
			n, len(c.Radar.Overlaps), c.Overlaps)
	}

	n := changesF("three")
	ahead, err := s.ScanProspect(t.Context(), must.Get(s.Prospect(t.Context(), "acme", "api", numbered(2), n))(t))
	must.OK(t, err)
	more := changesF("one")
	more.Changes = append(more.Changes, radar.Change{Path: "g", Status: "M"})
	_, _, err = s.Register(t.Context(), "acme", "api", numbered(0), more)
	must.OK(t, err)
	if got := s.register(t, numbered(2), n, ahead); len(got) != 2 || open() != 2 {
		t.Errorf("after a change of another tip: overlaps with %q, want 2 branches", got)
	}
	n.Parents = []string{numbered(0)}
	_, _, err = s.Register(t.Context(), "acme", "api", numbered(2), n)
	must.OK(t, err)
	if n := open(); n != 1 {
		t.Errorf("of a child of another tip: %d open overlaps, want 1", n)
	}

	_, _, err = s.Register(t.Context(), "acme", "api", numbered(2),
		ledger.Registration{Branch: "three", Changes: []radar.Change{{Path: "other", Status: "M"}}})
	must.OK(t, err)
	if n := open(); n != 0 {
		t.Errorf("after changing another file: %d open overlaps, want 0", n)
	}
}

// If more tips were registered since the last scan than fit into an index, it is rebuilt
// from the latest tips.
func TestIndexCatchesUpBeyondItsLimit(t *testing.T) {
	o := Options{RadarMemory: 20 * sizeOfTip}
	s, push := openWithTips(t, Options{})
	other := openAgain(t, s.path(t), o)
	if branches, _ := preview(t, other, "api"); len(branches) != 3 {
		t.Fatalf("overlaps with %q, want 3 branches", branches)
	}
	for i := range 60 {
		push(numbered(10+i), fmt.Sprint("branch", i))
	}
	branches, truncated := preview(t, other, "api")
	if n := len(branches); n < 5 || n > 20 || branches[0] != "branch59" || !truncated {
		t.Errorf("overlaps with %q, truncated %t; want 5 to 20 branches, truncated", branches, truncated)
	}
}

// A tipSource visits all live tips, latest first, or the tips with a greater seq, in order
// of seq. It passes the changes of live tips.
func TestTipSource(t *testing.T) {
	s, push := openWithTips(t, Options{})
	must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(1))) // seq 4
	push(numbered(4), "four")                                       // seq 5

	var visited []string
	visit := func(tip radarindex.Tip, changes []radar.Change) error {
		visited = append(visited, fmt.Sprintf("%s %d %d", tip.Branch, tip.Seq, len(changes)))
		return nil
	}

	source := s.Source()
	must.OK(t, source.Since(t.Context(), 1, 3, visit))
	if got, want := strings.Join(visited, " "), "two 4 0 four 5 1"; got != want {
		t.Errorf("Since visited %s, want %s", got, want)
	}
	visited = nil
	last, err := source.Live(t.Context(), 1, visit)
	must.OK(t, err)
	slices.Sort(visited) // two may have been opened in the same millisecond
	if got, want := strings.Join(visited, " "), "four 5 1 one 1 1 three 3 1"; got != want || last != 5 {
		t.Errorf("Live visited %s, last %d; want %s, last 5", got, last, want)
	}

	stop := errors.New("stop")
	last, err = source.Live(t.Context(), 1, func(radarindex.Tip, []radar.Change) error { return stop })
	if !errors.Is(err, stop) || last != 5 {
		t.Errorf("stopped: Live returned %d, %v; want 5, %v", last, err, stop)
	}
}

// TestFlightConditions checks the numbers in the conditions on a tip's flight.
func TestFlightConditions(t *testing.T) {
	for condition, want := range map[string]string{
		facts.IsInFlight: fmt.Sprintf("flight = %d", radarindex.InFlight),
		facts.IsLive:     fmt.Sprintf("flight < %d", radarindex.Superseded),
		facts.IsDone:     fmt.Sprintf("flight IN (%d, %d)", radarindex.Superseded, radarindex.Withdrawn),
	} {
		if condition != want {
			t.Errorf("condition is %q, want %q", condition, want)
		}
	}
}
