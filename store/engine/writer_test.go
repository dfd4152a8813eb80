package engine

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// What a transaction leaves to the next is in the next batch, before new jobs and in the same order.
func TestHoldBack(t *testing.T) {
	named := func(org string) *job { return &job{Write: sqldb.Write{Org: org}} }
	a1, b, a2, c := named("a"), named("b"), named("a"), named("c")
	w := &Writer{queue: newJobQueue(), Patience: lockPatience}
	later := []*sqldb.Write{&a1.Write, &a2.Write}
	if got := w.holdBack([]*job{a1, b, a2, c}, later); !slices.Equal(got, []*job{b, c}) {
		t.Errorf("%d jobs run now, want b and c", len(got))
	}

	w.queue.push(named("d"))
	if got := w.take(nil); len(got) != 3 || got[0] != a1 || got[1] != a2 || got[2].Org != "d" {
		t.Errorf("the next batch has %d jobs, want those held back before the new one", len(got))
	}
	if len(w.held) != 0 {
		t.Errorf("%d jobs are still held back", len(w.held))
	}
}
