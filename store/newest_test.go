package store

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// TestReadNewest reads the commits of several repos in parts, with different budgets. Down to
// the end of a part, no commit is missing; together, the parts have all.
func TestReadNewest(t *testing.T) {
	s := openWithRepo(t)
	random := testenv.Rand(t)
	const repos, commits = 7, 900
	insertRepos(t, s, repos)
	must.OK(t, s.write(t.Context(), "", func(t *tx) error {
		for i := range commits {
			_, err := t.Insert(`
INSERT INTO commits (repo_id, sha, state, state_since, registered_at, policy_version)
SELECT id, ?, 0, 1, 1, 1 FROM repos WHERE name = ?`,
				fmt.Sprintf("%040x", i), fmt.Sprint("r", int(math.Sqrt(float64(random.IntN(repos*repos))))))
			if err != nil {
				return err
			}
		}
		return nil
	}))

	for _, budget := range []int{1, 60, 400, 5000} {
		var got []int64
		below := int64(math.MaxInt64)
		for below > 0 {
			part, next := newestBelow(t, s, below, budget)
			if next >= below {
				t.Fatalf("budget %d: the part below %d ends at %d", budget, below, next)
			}
			got, below = append(got, part...), next
		}
		want := make([]int64, commits)
		for i := range want {
			want[i] = int64(commits - i)
		}
		if !slices.Equal(got, want) {
			t.Errorf("budget %d: %d commits, or in another order than newest first", budget, len(got))
		}
	}
}

// insertRepos adds the repos r0, r1 and so on to the first org.
func insertRepos(t *testing.T, s *Store, n int) {
	t.Helper()
	must.OK(t, s.write(t.Context(), "", func(t *tx) error {
		for i := range n {
			_, err := t.Insert(`
INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest)
VALUES (1, ?, 'main', 1, 1, '')`, fmt.Sprint("r", i))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// newestBelow returns the commits from below a row id down to the end of a part, and this end;
// 0 if it is the last part.
func newestBelow(t *testing.T, s *Store, below int64, budget int) (ids []int64, end int64) {
	t.Helper()
	_, err := read(t.Context(), s, txn.ByOrg("acme"), func(rd reader) (struct{}, error) {
		p, err := rd.findSearched("acme", "")
		must.OK(t, err)
		tracks, err := rd.commitTracks(p, below)
		must.OK(t, err)

		ids = nil // a long read begins again
		examined, last, err := readNewest(rd, tracks, budget, func(c txn.Keyed[newestCommit]) error {
			ids = append(ids, c.ID)
			return nil
		}, neverFull)
		if examined > budget || examined != len(ids) {
			t.Errorf("%d rows examined, %d visited, with a budget of %d", examined, len(ids), budget)
		}
		if last != nil {
			end = last[0].(int64)
		}
		return struct{}{}, err
	})
	must.OK(t, err)
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id < end })
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, end
}

// A sample says from when on it is complete only if rows of its time may be missing.
func TestSample(t *testing.T) {
	for _, test := range []struct {
		more  bool
		since ledger.Time
		want  string
	}{
		{false, 0, ""},
		{true, 0, "only the 1000 repos created last were read"},
		{true, 5, "only the newest 7 commits were read"},
	} {
		m := sampler{searched: searched{more: test.more}}
		got := m.sample(7, test.since, "commits")
		if got.Reason != test.want || got.Since != test.since || got.Examined != 7 {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}
