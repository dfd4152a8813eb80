package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/txn"
)

// countRows returns the result of a query that counts.
func countRows(t *testing.T, s *Store, query string, args ...any) int {
	t.Helper()
	n, err := txn.ReadLoose(t.Context(), s.db, txn.ForWrite(""), func(rd txn.Reader) (n int, err error) {
		return n, rd.Row(query, args...).Scan(&n)
	})
	must.OK(t, err)
	return n
}

const allPairs = `
SELECT count(*) FROM overlaps o JOIN tips l ON l.commit_id = o.later JOIN tips e ON e.commit_id = o.earlier `

// TestPruneDeletesClosedOverlaps runs random operations on tips. Afterwards, the database
// has rows for the overlaps that are open or may open again, and for no others.
func TestPruneDeletesClosedOverlaps(t *testing.T) {
	kept, pruned := 0, 0
	first := testenv.Seed(t)
	for seed := first; seed < first+10; seed++ {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		s := openAgain(t, NewFile(t), Options{Now: func() time.Time { return now }})
		createAcme(t, s)

		random := rand.New(rand.NewPCG(seed, 0))
		for range 150 {
			commit := random.IntN(40)
			switch random.IntN(8) {
			case 0:
				_ = s.Withdraw(t.Context(), "acme", "api", numbered(commit)) // it may not be a tip
			case 1:
				now = now.Add(time.Duration(random.IntN(100)) * time.Hour)
				must.OK(t, s.Settle(t.Context()))
			case 2:
				must.OK(t, s.Prune(t.Context()))
			default:
				n := ledger.Registration{Branch: fmt.Sprint("branch", commit%10),
					Changes: []radar.Change{{Path: fmt.Sprint("file", random.IntN(3)), Status: "M"}}}
				if random.IntN(5) == 0 {
					n.Contained = []string{numbered(random.IntN(40))}
				}
				_, _, err := s.Register(t.Context(), "acme", "api", numbered(commit), n)
				must.OK(t, err)
			}
		}

		oldest := ledger.TimeOf(now).Add(-30 * 24 * time.Hour)
		want := countRows(t, s, allPairs+"WHERE l."+facts.IsLive+" AND e."+facts.IsLive+
			" AND e.place < l.place AND l.opened_at >= ? AND e.opened_at >= ?", oldest, oldest)
		kept, pruned = kept+want, pruned+countRows(t, s, "SELECT count(*) FROM overlaps")-want
		must.OK(t, s.Prune(t.Context()))
		if n := countRows(t, s, "SELECT count(*) FROM overlaps"); n != want {
			t.Errorf("seed %d: %d overlaps after pruning, want %d", seed, n, want)
		}

		now = now.Add(31 * 24 * time.Hour)
		must.OK(t, s.Prune(t.Context()))
		if n := countRows(t, s, "SELECT count(*) FROM overlaps"); n != 0 {
			t.Errorf("seed %d: %d overlaps of tips that are too old", seed, n)
		}
	}
	if kept == 0 || pruned == 0 {
		t.Errorf("%d overlaps were kept and %d pruned, want some of both", kept, pruned)
	}
}
