package store

import (
	"cmp"

	"github.com/ledgerd/ledgerd/ledger"
)

// A worklist lists the commits of one repo whose state a write must derive again.
// It contains each commit once, in the order in which they were added.
type worklist struct {
	order   []int64
	entries map[int64]workEntry
}

// A workEntry says why the state of a commit is derived again.
type workEntry struct {
	cause ledger.Cause // the last cause; empty for none
	// reached reports whether a job has reached the commit. If the commit is due,
	// it is settled with the cause that made it due.
	reached bool
	// runs is the cause if another commit may run in an environment; empty for none.
	runs ledger.Cause
}

func (w *worklist) add(commitID int64, e workEntry) {
	if w.entries == nil {
		w.entries = make(map[int64]workEntry)
	}
	before, known := w.entries[commitID]
	if !known {
		w.order = append(w.order, commitID)
	}
	w.entries[commitID] = workEntry{
		cmp.Or(e.cause, before.cause), e.reached || before.reached, cmp.Or(e.runs, before.runs),
	}
}

// addWorkEntry adds a commit to the worklist.
func (t *tx) addWorkEntry(commitID int64, e workEntry) { t.work.add(commitID, e) }

// takeWork returns the worklist, which is empty then.
func (t *tx) takeWork() worklist {
	work := t.work
	t.work = worklist{}
	return work
}

// hasWork reports whether the worklist is not empty.
func (t *tx) hasWork() bool { return len(t.work.order) > 0 }
