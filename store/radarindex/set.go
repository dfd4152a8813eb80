package radarindex

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// A Set holds the indexes of repos and limits their total size. Its methods are
// safe for concurrent use.
type Set struct {
	limit int64 // in bytes

	mu    sync.Mutex
	repos map[int64]*Index
	size  int64 // the sum of Index.counted, in bytes
	uses  int64 // the number of calls of Get
}

// NewSet returns an empty Set whose indexes together use at most about limit
// bytes.
func NewSet(limit int64) *Set { return &Set{limit: limit, repos: make(map[int64]*Index)} }

// Get returns the index of a repo as it was last refreshed, or a new, empty index
// if the set has none.
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

// Size returns the approximate size of all indexes, and its limit, in bytes.
func (s *Set) Size() (size, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.limit
}

// idleAfter is the number of uses of other indexes after which an index is idle.
const idleAfter = 1000

// fit enforces the memory limit after x was refreshed: it evicts idle indexes,
// then shrinks the largest. Indexes in use are not evicted, to avoid thrashing.
// If there is room again for the tips that x omits, fit evicts x, and the next
// Fresh rebuilds it. An evicted index remains usable.
func (s *Set) fit(x *Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[x.repoID] != x {
		return // evicted by another caller
	}
	s.count(x)

	omitted := min(x.currentStats().omitted, s.limit/2) // many of those tips may have ended since
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

// slack returns how many bytes below its limit the set shrinks, so that it does
// not have to shrink again soon.
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

// shrink shrinks the largest index until the set takes at most size bytes. It
// removes at most half of an index at a time, because the indexes may be of
// similar size.
func (s *Set) shrink(size int64) {
	bySize := func(a, b *Index) int { return cmp.Compare(a.counted, b.counted) }
	for s.size > size {
		largest := slices.MaxFunc(slices.Collect(maps.Values(s.repos)), bySize)
		largest.shrink(max(largest.counted/2, largest.counted-(s.size-size)))
		s.count(largest)
	}
}

// count updates the size of the set after a change of x.
func (s *Set) count(x *Index) {
	size := x.currentStats().size
	s.size += size - x.counted
	x.counted = size
}

// maxEntry returns the maximum size of one tip, in bytes. Larger tips are
// omitted, because they would displace most others.
func (s *Set) maxEntry() int64 { return s.limit / 4 }
