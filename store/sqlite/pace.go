package sqlite

import (
	"context"
	"sync"
	"time"
)

const (
	// paceWindow is the time over which it is judged whether the writer is busy.
	paceWindow = 100 * time.Millisecond
	// paceRest is how much longer than they took deliveries leave the writer to
	// others while it is busy: they get a tenth of its time at most.
	paceRest = 9
	// paceLeast is how far apart claims are while the writer is busy, at least.
	paceLeast = 5 * time.Millisecond
)

// A pace lets those who record go first. While what others write keeps the
// writer busy, claims of deliveries wait for their turn, one at a time, so that
// deliveries have a fixed part of the writer, however many webhooks there are.
// What waits is not lost: it is in the outbox, and goes out once there is time.
type pace struct {
	turn chan struct{} // held by the claim whose turn is next

	mu     sync.Mutex
	begin  time.Time     // of the window
	others time.Duration // the writer's time for others in it
	busy   bool          // what the window before showed
	last   time.Time     // when the writer last finished something
	next   time.Time     // when the next claim may begin
}

func newPace() *pace { return &pace{turn: make(chan struct{}, 1)} }

// note counts a transaction: how much of it went into deliveries, and whether
// it had other writes.
func (p *pace) note(begin, end time.Time, deliveries time.Duration, others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begin.Sub(p.last) > paceWindow { // it was idle
		p.begin, p.others, p.busy = begin, 0, false
	}
	p.last = end
	if others {
		p.others += end.Sub(begin) - deliveries
	}
	if p.next.Before(end) {
		p.next = end
	}
	p.next = p.next.Add(paceRest * deliveries)
	if length := end.Sub(p.begin); length >= paceWindow {
		p.busy = p.others > length/2
		p.begin, p.others = end, 0
	}
	if !p.busy {
		p.next = end
	}
}

// wait returns when a claim may begin.
func (p *pace) wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	for {
		rest := p.rest(time.Now())
		if rest <= 0 {
			return nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rest returns how long to wait before asking again; 0 lets one claim begin.
func (p *pace) rest(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy || now.Sub(p.last) > paceWindow {
		return 0
	}
	if rest := p.next.Sub(now); rest > 0 {
		return min(rest, paceWindow)
	}
	p.next = now.Add(paceLeast)
	return 0
}
