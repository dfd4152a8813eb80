package radarindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A Source reads the committed tips of repos. If visit returns an error, its
// methods stop and return an error that wraps it.
type Source interface {
	// Since visits the tips of a repo whose Seq is above seq, ordered by Seq, each
	// with the changes of its commit. The changes are nil if the tip's Flight is
	// Superseded or above, because no commit is compared with it again.
	Since(ctx context.Context, repoID, seq int64, visit func(Tip, []radar.Change) error) error
	// Live visits the tips of a repo with which other commits are compared, latest
	// first, and returns the highest Seq of the repo, all from one snapshot. It
	// returns last even if visit stopped it.
	Live(ctx context.Context, repoID int64, visit func(Tip, []radar.Change) error) (last int64, err error)
}

// Fresh brings the index of a repo up to date with the source, enforces the set's
// memory limit, and returns the index. One caller at a time refreshes an index;
// the others wait, and return the context's error if it is cancelled.
func (s *Set) Fresh(ctx context.Context, repoID int64, source Source) (*Index, error) {
	x := s.Get(repoID)
	select {
	case x.refreshing <- struct{}{}:
		defer func() { <-x.refreshing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	u, err := s.read(ctx, x, source)
	if err != nil {
		return nil, fmt.Errorf("read tips: %w", err)
	}
	x.apply(u, s.maxEntry())
	s.fit(x)
	return x, nil
}

// An update is the part of a source that an index has not seen.
type update struct {
	// entries are ordered by Seq. An entry has no changes if it is too large or its
	// Flight is Superseded or above.
	entries []*entry
	seq     int64 // the highest Seq
	all     bool  // reports whether the entries replace the whole index
	omitted int64 // the approximate size of the omitted tips, which are the oldest, in bytes
	size    int64 // the size of entries, in bytes
}

// errFull stops a Source when an update reaches the set's memory limit.
var errFull = errors.New("the index is full")

// read reads the tips that the index has not seen. If they exceed the memory
// limit, or the index is empty, it reads all live tips instead.
func (s *Set) read(ctx context.Context, x *Index, source Source) (update, error) {
	if seq := x.Seq(); seq > 0 {
		u, err := s.readSince(ctx, x.repoID, seq, source)
		if !errors.Is(err, errFull) {
			return u, err
		}
	}
	return s.readLive(ctx, x.repoID, source)
}

// readSince reads the tips with a Seq above seq. Its error wraps errFull if they
// exceed the memory limit.
func (s *Set) readSince(ctx context.Context, repoID, seq int64, source Source) (update, error) {
	u := update{seq: seq}
	err := source.Since(ctx, repoID, seq, s.adder(&u))
	if n := len(u.entries); n > 0 {
		u.seq = u.entries[n-1].tip.Seq
	}
	return u, err
}

// readLive reads the live tips, or the latest of them if not all fit in memory.
func (s *Set) readLive(ctx context.Context, repoID int64, source Source) (u update, err error) {
	u.all = true
	u.seq, err = source.Live(ctx, repoID, s.adder(&u))
	if errors.Is(err, errFull) {
		u.omitted, err = s.limit/2, nil // a guess: the true size is unknown
	}
	slices.SortFunc(u.entries, func(a, b *entry) int { return cmp.Compare(a.tip.Seq, b.tip.Seq) })
	return u, err
}

// adder returns a visit function that adds tips to u. It drops the changes of a
// tip that is too large, and returns errFull if a tip does not fit.
func (s *Set) adder(u *update) func(Tip, []radar.Change) error {
	return func(tip Tip, changes []radar.Change) error {
		e := newEntry(tip, changes)
		if e.size > s.maxEntry() {
			e.record, e.ends = nil, nil
		} else if u.size += e.size; u.size > s.limit {
			return errFull
		}
		u.entries = append(u.entries, e)
		return nil
	}
}

// apply brings the index up to date. It omits tips larger than maxEntry bytes.
func (x *Index) apply(u update, maxEntry int64) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if u.all {
		x.clear()
	}
	x.seq, x.omitted = u.seq, x.omitted+u.omitted
	for _, e := range u.entries {
		id := e.tip.CommitID
		delete(x.oversized, id)
		switch {
		case e.tip.Flight >= Superseded:
			x.remove(x.entries[id])
		case e.size > maxEntry:
			x.remove(x.entries[id])
			x.oversized[id] = true
		default:
			x.put(e)
		}
	}
}
