package dispatch

import (
	"slices"
	"sync"
)

// slots bound the requests that are in flight in all. Webhooks whose last
// attempt did not succeed share half of them, so that receivers that hang leave
// the others room. Who finds none waits, and those who wait take turns.
type slots struct {
	mu        sync.Mutex
	free      int
	freeShaky int // of those free, how many at most are for shaky webhooks
	waiting   []*turn
}

func newSlots(total int) *slots { return &slots{free: total, freeShaky: max(1, total/2)} }

// A slot allows one request.
type slot struct {
	of    *slots
	shaky bool
}

// A turn is a webhook's place among those that wait, one for each.
type turn struct {
	granted chan slot // capacity 1
	shaky   bool
	waiting bool
}

func newTurn() *turn { return &turn{granted: make(chan slot, 1)} }

// take returns a slot, or notes that the webhook waits for one: it then comes
// through turn.granted.
func (s *slots) take(t *turn, shaky bool) (slot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.waiting || len(t.granted) > 0 {
		return slot{}, false
	}
	// Nobody who waits could use what is free: it would have been granted.
	if got, ok := s.grant(shaky); ok {
		return got, true
	}
	t.waiting, t.shaky = true, shaky
	s.waiting = append(s.waiting, t)
	return slot{}, false
}

// grant takes a slot if there is one. The caller holds the lock.
func (s *slots) grant(shaky bool) (slot, bool) {
	if s.free == 0 || shaky && s.freeShaky == 0 {
		return slot{}, false
	}
	s.free--
	if shaky {
		s.freeShaky--
	}
	return slot{s, shaky}, true
}

// give returns a slot, which goes to the first of those who wait that can use
// it.
func (l slot) give() {
	s := l.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if l.shaky {
		s.freeShaky++
	}
	for i, t := range s.waiting {
		if next, ok := s.grant(t.shaky); ok {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			t.waiting = false
			t.granted <- next
			return
		}
	}
}

// leave ends a webhook's waiting.
func (s *slots) leave(t *turn) {
	s.mu.Lock()
	if t.waiting {
		t.waiting = false
		i := slices.Index(s.waiting, t)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	select {
	case l := <-t.granted:
		l.give()
	default:
	}
}
