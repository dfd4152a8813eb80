package engine

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A batch waits for locks unless that delays jobs that have not waited for them yet.
func TestIsPatient(t *testing.T) {
	fresh, held := &job{}, &job{isHeld: true}
	for name, tt := range map[string]struct {
		batch []*job
		want  bool
	}{
		"no jobs":             {nil, true},
		"new jobs":            {[]*job{fresh, fresh}, true},
		"jobs that waited":    {[]*job{held, held}, true},
		"jobs of both kinds":  {[]*job{held, fresh}, false},
		"the other way round": {[]*job{fresh, held}, false},
	} {
		if got := isPatient(tt.batch); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}

// What the locks do not cover is in the next batch, in the same order, and marked.
func TestHoldBack(t *testing.T) {
	named := func(org string) *job { return &job{Write: sqldb.Write{Org: org}} }
	a1, b, a2, c := named("a"), named("b"), named("a"), named("c")
	w := &Writer{queue: newJobQueue(), Patience: lockPatience}
	covers := func(write sqldb.Write) bool { return write.Org != "a" }
	if got := w.holdBack([]*job{a1, b, a2, c}, covers); !slices.Equal(got, []*job{b, c}) {
		t.Errorf("%d jobs run now, want b and c", len(got))
	}
	if !a1.isHeld || !a2.isHeld || b.isHeld || c.isHeld {
		t.Error("other jobs are marked than those that were held back")
	}

	w.queue.push(named("d"))
	if got := w.take(nil); len(got) != 3 || got[0] != a1 || got[1] != a2 || got[2].Org != "d" {
		t.Errorf("the next batch has %d jobs, want those held back before the new one", len(got))
	}
	if len(w.held) != 0 {
		t.Errorf("%d jobs are still held back", len(w.held))
	}
}
