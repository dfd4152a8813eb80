package dispatch

import (
	"slices"
	"sync"
)

// slots limits the total number of requests in flight. Webhooks that are failing, or
// have not succeeded yet (unhealthy ones) share half of the slots, so that hanging
// receivers cannot block the others. Webhooks that wait for a slot are served in order.
type slots struct {
	mu            sync.Mutex
	free          int
	freeUnhealthy int // how many of the free slots unhealthy webhooks may take
	waiting       []*waiter
}

func newSlots(total int) *slots { return &slots{free: total, freeUnhealthy: max(1, total/2)} }

// A slot allows one request.
type slot struct {
	pool      *slots
	unhealthy bool
}

// A waiter is a webhook's position in the queue for slots. Each endpoint has one.
type waiter struct {
	granted   chan slot // capacity 1
	unhealthy bool
	waiting   bool
}

func newWaiter() *waiter { return &waiter{granted: make(chan slot, 1)} }

// take returns a free slot. If it returns false, w waits in the queue, and the slot
// comes through w.granted.
func (s *slots) take(w *waiter, unhealthy bool) (slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.granted) > 0 || w.waiting && w.unhealthy == unhealthy {
		return slot{}, false
	}
	if w.waiting { // its health has changed
		s.remove(w)
	}

	// This is not unfair to the queue: a free slot that a waiter can use is granted
	// at once.
	if got, ok := s.grant(unhealthy); ok {
		return got, true
	}

	w.waiting, w.unhealthy = true, unhealthy
	s.waiting = append(s.waiting, w)
	return slot{}, false
}

// grant takes a free slot. The caller holds the lock.
func (s *slots) grant(unhealthy bool) (slot, bool) {
	if s.free == 0 || unhealthy && s.freeUnhealthy == 0 {
		return slot{}, false
	}
	s.free--
	if unhealthy {
		s.freeUnhealthy--
	}
	return slot{s, unhealthy}, true
}

// release returns the slot, and grants it to the first waiter that can use it.
func (l slot) release() {
	s := l.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if l.unhealthy {
		s.freeUnhealthy++
	}

	for i, w := range s.waiting {
		if next, ok := s.grant(w.unhealthy); ok {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			w.waiting = false
			w.granted <- next
			return
		}
	}
}

// cancel removes w from the queue, and releases a slot that it was granted.
func (s *slots) cancel(w *waiter) {
	s.mu.Lock()
	if w.waiting {
		s.remove(w)
	}
	s.mu.Unlock()
	select {
	case l := <-w.granted:
		l.release()
	default:
	}
}

// remove removes a waiter from the queue. The caller holds the lock.
func (s *slots) remove(w *waiter) {
	w.waiting = false
	i := slices.Index(s.waiting, w)
	s.waiting = slices.Delete(s.waiting, i, i+1)
}
