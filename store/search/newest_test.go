package search_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestReadNewest reads the commits of several repos in parts, with different budgets. Down to
// the end of a part, no commit is missing; together, the parts have all.
func TestReadNewest(t *testing.T) {
	s := must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	defer s.Close()
	must.Get(s.CreateOrg(t.Context(), "acme"))(t)
	random := testenv.Rand(t)
	const repos, commits = 7, 900
	for i := range repos {
		must.Get(s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: fmt.Sprint("r", i)}, "host"))(t)
	}
	for i := range commits {
		repo := fmt.Sprint("r", int(math.Sqrt(float64(random.IntN(repos*repos)))))
		must.OK(t, s.InsertCommit(t.Context(), repo, fmt.Sprintf("%040x", i)))
	}

	for _, budget := range []int{1, 60, 400, 5000} {
		var got []int64
		below := int64(math.MaxInt64)
		for below > 0 {
			part, next, err := s.NewestBelow(t.Context(), below, budget)
			must.OK(t, err)
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
