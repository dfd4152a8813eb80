package radarindex

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// A Set holds the indexes of repos and limits their total size. Its methods may
// be called concurrently.
type Set struct {
	limit int64 // in bytes

	mu    sync.Mutex
	repos map[int64]*Index
	size  int64 // the sum of what the indexes are counted as, in bytes
	uses  int64 // how often an index was asked for
}

// NewSet returns an empty Set whose indexes together use about limit bytes.
func NewSet(limit int64) *Set { return &Set{limit: limit, repos: make(map[int64]*Index)} }

// Get returns the index of a repo as it was last refreshed. If the set has none,
// Get adds an empty one.
func (s *Set) Get(repoID int64) *Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.repos[repoID]
	if x == nil {
		x = newIndex(repoID)
		s.repos[repoID] = x
	}
	s.uses++
	x.lastUse = s.uses
	return x
}

// idleAfter is how many uses of other indexes make an index idle.
const idleAfter = 1000

// fit enforces the memory limit after an index was refreshed: it evicts idle
// indexes, then shrinks the largest. It does not evict indexes in use, because
// repos would then take turns at being read from disk. An index is also evicted
// if there is room again for the tips it omits; the next Fresh rebuilds it. A
// caller that uses an evicted index may go on.
func (s *Set) fit(x *Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[x.repoID] != x {
		return
	}
	s.count(x)
	omitted := min(x.current().omitted, s.limit/2) // many of those tips may have ended since
	if s.size > s.limit || omitted > 0 {
		s.evictIdle()
	}
	if s.size > s.limit {
		s.shrink(s.limit - s.slack())
	}
	if omitted > 0 && omitted+s.slack() < s.limit-s.size {
		s.evict(x)
	}
}

// slack is how far below its limit the set shrinks, in bytes, so that it need
// not shrink again at once.
func (s *Set) slack() int64 { return s.limit / 10 }

func (s *Set) evictIdle() {
	for _, x := range s.repos {
		if x.lastUse < s.uses-idleAfter {
			s.evict(x)
		}
	}
}

func (s *Set) evict(x *Index) {
	delete(s.repos, x.repoID)
	s.size -= x.counted
}

// shrink shrinks the largest index until the size of the set is at most size. It
// removes at most half of an index at a time, because the largest need not be
// large.
func (s *Set) shrink(size int64) {
	bySize := func(a, b *Index) int { return cmp.Compare(a.counted, b.counted) }
	for s.size > size {
		largest := slices.MaxFunc(slices.Collect(maps.Values(s.repos)), bySize)
		largest.shrink(max(largest.counted/2, largest.counted-(s.size-size)))
		s.count(largest)
	}
}

// count updates the size of the set after an index has changed.
func (s *Set) count(x *Index) {
	size := x.current().size
	s.size += size - x.counted
	x.counted = size
}

// maxEntry is the maximum size of one tip, in bytes. A larger one is left out,
// so that it does not push out all others.
func (s *Set) maxEntry() int64 { return s.limit / 4 }
