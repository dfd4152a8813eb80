package engine

import (
	"context"
	"sync"
	"time"
)

const (
	// busyWindow is the period for which the writer is measured as busy or not.
	busyWindow = 100 * time.Millisecond
	// yieldFactor is the ratio of the busy writer's time for other writes to its time for
	// yielding writes. 9 gives yielding writes at most a tenth of the time.
	yieldFactor = 9
	// claimInterval is the minimum time between two claims while the writer is busy.
	claimInterval = 5 * time.Millisecond
)

// A throttle gives recording priority over webhook deliveries. The writes that
// yield are claims of deliveries and their outcomes. While other writes keep the
// writer busy, claims wait and begin one at a time. So deliveries get a fixed
// share of the writer, however many webhooks there are. Deliveries that wait stay
// in the outbox.
type throttle struct {
	turn chan struct{} // holds a value while a claim waits for its turn

	mu     sync.Mutex
	begin  time.Time     // the start of the current window
	others time.Duration // the writer's time for other writes in the window
	busy   bool          // whether the writer was busy in the previous window
	last   time.Time     // when the last transaction ended
	next   time.Time     // when the next claim may begin
}

func newThrottle() *throttle { return &throttle{turn: make(chan struct{}, 1)} }

// observe records how long a transaction took, how much of that went into yielding
// writes, and whether it had other writes.
func (t *throttle) observe(begin, end time.Time, yielding time.Duration, others bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if begin.Sub(t.last) > busyWindow { // the writer was idle
		t.begin, t.others, t.busy = begin, 0, false
	}
	t.last = end
	if others {
		t.others += end.Sub(begin) - yielding
	}

	if t.next.Before(end) {
		t.next = end
	}
	t.next = t.next.Add(yieldFactor * yielding)

	if length := end.Sub(t.begin); length >= busyWindow {
		t.busy = t.others > length/2
		t.begin, t.others = end, 0
	}
	if !t.busy {
		t.next = end
	}
}

// wait waits until a claim may begin. It returns the context's error if
// that is cancelled first.
func (t *throttle) wait(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.turn }()

	for {
		delay := t.delay(time.Now())
		if delay <= 0 {
			return nil
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delay returns how long to wait before calling it again. 0 lets one claim begin.
func (t *throttle) delay(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.busy || now.Sub(t.last) > busyWindow {
		return 0
	}
	if delay := t.next.Sub(now); delay > 0 {
		return min(delay, busyWindow)
	}
	t.next = now.Add(claimInterval)
	return 0
}
