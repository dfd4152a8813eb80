package store

import (
	"cmp"

	"github.com/ledgerd/ledgerd/ledger"
)

// A worklist holds the commits of one repo that a write has to derive again,
// each once, in the order in which they came.
type worklist struct {
	order   []int64
	entries map[int64]workEntry
}

// A workEntry says why a commit is derived again.
type workEntry struct {
	cause ledger.Cause // the last that was given; empty for none
	// reached marks a commit that Evaluate has reached: what is due is settled
	// first, for its own cause.
	reached bool
}

func (w *worklist) add(commitID int64, e workEntry) {
	if w.entries == nil {
		w.entries = make(map[int64]workEntry)
	}
	before, known := w.entries[commitID]
	if !known {
		w.order = append(w.order, commitID)
	}
	w.entries[commitID] = workEntry{cmp.Or(e.cause, before.cause), e.reached || before.reached}
}
