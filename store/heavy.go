package store

import (
	"context"
	"time"
)

const (
	// heavyWork is the work from which deriving the state of a commit is heavy: its evidence,
	// times the requirements of its contract.
	heavyWork = 50_000
	// maxHeavy is the number of commits of which it is known whether they are heavy.
	maxHeavy = 10_000
	// maxRest limits the rest after heavy work.
	maxRest = 100 * time.Millisecond
)

// A heavyLimit leaves processors to others while commits with much evidence are read and
// attested under large contracts. One request for such a commit is served at a time, and
// then none for as long as it took: together they take half of one processor.
type heavyLimit struct {
	slot chan struct{} // holds a value during heavy work and the rest after it
	// commits reports whether commits were heavy when they were last used, by repo and id as
	// requested. The first use of a commit is not limited.
	commits *cache[string, bool]
}

func newHeavyLimit() *heavyLimit {
	return &heavyLimit{slot: make(chan struct{}, 1), commits: newCache[string, bool](maxHeavy)}
}

// enter waits until a request for a commit may be served. The caller must call leave when
// it was served, with the work that it took, even after a panic.
func (h *heavyLimit) enter(ctx context.Context, commit string) (leave func(work int64), err error) {
	isHeavy, _ := h.commits.get(commit)
	note := func(work int64) {
		if now := work > heavyWork; now != isHeavy {
			h.commits.put(commit, now)
		}
	}
	if !isHeavy {
		return note, nil
	}

	select {
	case h.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began := time.Now()
	return func(work int64) {
		note(work)
		time.AfterFunc(min(time.Since(began), maxRest), func() { <-h.slot })
	}, nil
}
