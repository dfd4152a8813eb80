package radarindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// If many repos share the memory, each keeps its latest tips.
func TestReposShareMemory(t *testing.T) {
	const repos, tips = 20, 8
	set := NewSet(repos * tips * (entrySize + nameSize) / 2)
	for i := range tips {
		for repo := range int64(repos) {
			x := set.Get(repo)
			x.put(newEntry(Tip{CommitID: int64(i), Place: int64(i)}, []radar.Change{{Path: "f", Status: "M"}}))
			set.fit(x)
		}
	}
	for repo, x := range set.repos {
		if x.entries[tips-1] == nil || x.entries[0] != nil || !x.incomplete() {
			t.Errorf("repo %d: %d tips remain, want the latest of %d", repo, len(x.entries), tips)
		}
	}
	if set.size > set.limit || len(set.repos) != repos {
		t.Errorf("%d repos take %d bytes, limit %d", len(set.repos), set.size, set.limit)
	}
}

// A memorySource is an in-memory Source that counts the calls of its methods.
type memorySource struct {
	tips        map[int64]*memoryTip // by commit
	last        int64
	since, live int
}

type memoryTip struct {
	Tip
	changes []radar.Change
}

func newMemorySource() *memorySource { return &memorySource{tips: make(map[int64]*memoryTip)} }

// push adds a commit that changes n files, the first of which is f.
func (m *memorySource) push(id int64, n int) {
	m.last++
	changes := []radar.Change{{Path: "f", Status: "M"}}
	for i := 1; i < n; i++ {
		changes = append(changes, radar.Change{Path: fmt.Sprint("file", i), Status: "M"})
	}
	tip := Tip{CommitID: id, Flight: InFlight, Place: m.last, Seq: m.last, OpenedAt: ledger.Time(m.last)}
	tip.SHA, tip.Branch = fmt.Sprint("sha", id), fmt.Sprint("branch", id)
	m.tips[id] = &memoryTip{tip, changes}
}

// withdraw takes a commit out of flight.
func (m *memorySource) withdraw(id int64) {
	m.last++
	m.tips[id].Flight, m.tips[id].Seq, m.tips[id].changes = Withdrawn, m.last, nil
}

func (m *memorySource) Since(_ context.Context, _, seq int64, visit func(Tip, []radar.Change) error) error {
	m.since++
	return m.visit(visit, func(a, b *memoryTip) int { return cmp.Compare(a.Seq, b.Seq) },
		func(t *memoryTip) bool { return t.Seq > seq })
}

func (m *memorySource) Live(_ context.Context, _ int64, visit func(Tip, []radar.Change) error) (int64, error) {
	m.live++
	return m.last, m.visit(visit, func(a, b *memoryTip) int { return cmp.Compare(b.OpenedAt, a.OpenedAt) },
		func(t *memoryTip) bool { return t.Flight < Superseded })
}

func (m *memorySource) visit(
	visit func(Tip, []radar.Change) error, order func(a, b *memoryTip) int, wanted func(*memoryTip) bool,
) error {
	var tips []*memoryTip
	for _, t := range m.tips {
		if wanted(t) {
			tips = append(tips, t)
		}
	}
	slices.SortFunc(tips, order)
	for _, t := range tips {
		if err := visit(t.Tip, t.changes); err != nil {
			return fmt.Errorf("visit: %w", err)
		}
	}
	return nil
}

// scanF refreshes the index of a repo, scans it for a commit that changes the
// file f, and returns the commits that overlap, strongest first.
func scanF(t *testing.T, set *Set, repoID int64, source Source) (commits []int64, more bool) {
	t.Helper()
	x, err := set.Fresh(t.Context(), repoID, source)
	must.OK(t, err)
	n := ledger.Registration{Changes: []radar.Change{{Path: "f", Status: "M"}}}
	own := Tip{CommitID: -1, Place: 1 << 62, OpenedAt: 1 << 40}
	own.SHA, own.Branch = "own", "own"
	s := x.Scan(conflicts.Settings{}, own, n, 0)
	for _, f := range s.Matches {
		commits = append(commits, f.CommitID)
	}
	if set.size > set.limit {
		t.Errorf("the set takes %d bytes, limit %d", set.size, set.limit)
	}
	return commits, s.More
}

func TestFreshReadsChanges(t *testing.T) {
	set, source := NewSet(1<<20), newMemorySource()
	want := func(want ...int64) {
		t.Helper()
		if got, more := scanF(t, set, 1, source); !slices.Equal(got, want) || more {
			t.Errorf("got %v, more %t; want %v", got, more, want)
		}
		if got := set.Get(1).Seq(); got != source.last {
			t.Errorf("Seq: got %d, want %d", got, source.last)
		}
	}

	want()
	source.push(1, 1)
	source.push(2, 1)
	want(2, 1)
	source.push(3, 1)
	source.withdraw(2)
	want(3, 1)
	source.push(1, 1)
	want(1, 3)
	if source.live != 2 || source.since != 2 {
		t.Errorf("got %d calls of Live and %d of Since, want 2 and 2", source.live, source.since)
	}
}

// If memory is short, the latest tips stay in the index. Repos in use do not evict
// each other. An index is rebuilt when there is room for the tips it omits.
func TestFreshKeepsTheLatestTips(t *testing.T) {
	const tips = 20
	set := NewSet(tips * (entrySize + nameSize + 50))
	sources := []*memorySource{newMemorySource(), newMemorySource()}
	wantLatest := func(repo int64) {
		t.Helper()
		got, more := scanF(t, set, repo, sources[repo])
		if len(got) < 5 || len(got) >= tips || got[0] != tips-1 || !more {
			t.Errorf("repo %d: got %v, more %t; want the latest tips, more true", repo, got, more)
		}
	}

	for repo, source := range sources {
		for i := range int64(tips) {
			source.push(i, 1)
			scanF(t, set, int64(repo), source)
		}
	}

	for range 3 {
		wantLatest(0)
		wantLatest(1)
	}
	if len(set.repos) != 2 || sources[0].live != 1 || sources[1].live != 1 {
		t.Errorf("got %d repos, read %d and %d times; want 2, each read once",
			len(set.repos), sources[0].live, sources[1].live)
	}
	for i := range int64(tips - 3) {
		sources[1].withdraw(tips - 1 - i)
	}
	scanF(t, set, 1, sources[1]) // evicts the index, because there is room again
	if got, more := scanF(t, set, 1, sources[1]); !slices.Equal(got, []int64{2, 1, 0}) || more {
		t.Errorf("got %v, more %t; want all tips that remain", got, more)
	}
}

// A tip that is too large is omitted alone. The results are incomplete only until
// it gets smaller.
func TestFreshOmitsATipThatIsTooLarge(t *testing.T) {
	set, source := NewSet(8000), newMemorySource()
	for i := range int64(3) {
		source.push(i, 1)
	}
	source.push(7, 20)
	for range 2 {
		if got, more := scanF(t, set, 1, source); !slices.Equal(got, []int64{2, 1, 0}) || !more {
			t.Errorf("got %v, more %t; want [2 1 0], more true", got, more)
		}
	}
	source.push(7, 1)
	if got, more := scanF(t, set, 1, source); !slices.Equal(got, []int64{7, 2, 1, 0}) || more {
		t.Errorf("got %v, more %t; want [7 2 1 0], more false", got, more)
	}
}

// An index that is behind by more tips than fit is rebuilt from the latest ones.
func TestFreshRebuildsAnIndexThatIsFarBehind(t *testing.T) {
	set, source := NewSet(20*(entrySize+nameSize)), newMemorySource()
	source.push(100, 1)
	scanF(t, set, 1, source)
	for i := range int64(60) {
		source.push(i, 1)
	}
	got, more := scanF(t, set, 1, source)
	if n := len(got); n < 5 || n > 20 || got[0] != 59 || !more {
		t.Errorf("got %v, more %t; want the latest tips, more true", got, more)
	}
	if source.live != 2 || source.since != 1 {
		t.Errorf("got %d calls of Live and %d of Since, want 2 and 1", source.live, source.since)
	}
}

func TestFreshEvictsAnIdleIndex(t *testing.T) {
	set, idle, busy := NewSet(10*(entrySize+nameSize+50)), newMemorySource(), newMemorySource()
	for i := range int64(5) {
		idle.push(i, 1)
	}
	scanF(t, set, 1, idle)
	for range idleAfter + 1 {
		set.Get(2)
	}
	for i := range int64(8) {
		busy.push(i, 1)
	}
	if got, more := scanF(t, set, 2, busy); len(got) != 8 || more {
		t.Errorf("got %v, more %t; want all 8 tips", got, more)
	}
	if _, ok := set.repos[1]; ok {
		t.Error("the idle index was not evicted")
	}
}

// An error of the source leaves the index unchanged. A caller that waits for a
// refresh can give up.
func TestFreshFails(t *testing.T) {
	set, source := NewSet(1<<20), newMemorySource()
	source.push(1, 1)
	scanF(t, set, 1, source)
	failed := errors.New("failed")
	if _, err := set.Fresh(t.Context(), 1, failingSource{failed}); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	if got, _ := scanF(t, set, 1, source); !slices.Equal(got, []int64{1}) {
		t.Errorf("got %v, want [1]", got)
	}

	set.Get(1).refreshing <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := set.Fresh(ctx, 1, source); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

type failingSource struct{ err error }

func (f failingSource) Since(context.Context, int64, int64, func(Tip, []radar.Change) error) error {
	return f.err
}

func (f failingSource) Live(context.Context, int64, func(Tip, []radar.Change) error) (int64, error) {
	return 0, f.err
}
