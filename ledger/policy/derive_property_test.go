package policy

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestStateIsStableUntilExpires(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		now := drawNow(t)
		before := c.Derive(f, now)
		end := before.Expires
		if end == 0 {
			end = now + 10000
		}
		if end <= now {
			t.Fatalf("expires at %d, which is not after %d", end, now)
		}

		for _, later := range []ledger.Time{ledger.Time(rapid.Int64Range(int64(now), int64(end)-1).Draw(t, "later")),
			end - 1} {
			// The requirements of a DEPLOYED commit may expire, but not its state.
			after := c.Derive(f, later)
			if after.State != before.State || !f.Deployed && !reflect.DeepEqual(after, before) {
				t.Errorf("at %d %+v, but at %d %+v", now, before, later, after)
			}
		}
		if before.Expires != 0 {
			if after := c.Derive(f, end); after.Expires != 0 && after.Expires <= end {
				t.Errorf("at the expiry %d, the next one is %d", end, after.Expires)
			}
		}
	})
}

func TestWaitingNeverRaisesTheState(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		now := drawNow(t)
		later := now + ledger.Time(rapid.Int64Range(0, 100).Draw(t, "wait"))
		if after, before := c.Derive(f, later).State, c.Derive(f, now).State; after > before {
			t.Errorf("from %s to %s by waiting", before, after)
		}
	})
}

func TestOrderOfEvidenceDoesNotMatter(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		now := drawNow(t)
		for i := range f.Evidence {
			if e := &f.Evidence[i]; e.isRollback() && rapid.Bool().Draw(t, "from elsewhere") {
				e.Predicate = "rollback:eu"
			}
		}
		want := c.Derive(f, now)
		f.Evidence = rapid.Permutation(f.Evidence).Draw(t, "order")
		f.Carried = rapid.Permutation(f.Carried).Draw(t, "order of carried evidence")
		f.Overlaps = rapid.Permutation(f.Overlaps).Draw(t, "order of overlaps")
		f.Exceptions = rapid.Permutation(f.Exceptions).Draw(t, "order of exceptions")
		if got := c.Derive(f, now); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestPathIsConsecutive(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(ledger.States()).Draw(t, "from")
		to := rapid.SampledFrom(ledger.States()).Draw(t, "to")
		path := Path(from, to)
		if (len(path) == 0) != (from == to) || len(path) > 0 && path[len(path)-1] != to {
			t.Fatalf("from %s to %s by %v", from, to, path)
		}
		for at := from; len(path) > 0; at, path = path[0], path[1:] {
			if path[0] > at && path[0] != at+1 || path[0] < at && len(path) != 1 {
				t.Fatalf("from %s to %s by %v", at, to, path)
			}
		}
	})
}
