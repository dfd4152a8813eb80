package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	settleBatch = 500
	// minStoreRetry and maxStoreRetry bound the time between retries of a failing
	// store call.
	minStoreRetry = 100 * time.Millisecond
	maxStoreRetry = 5 * time.Second
	// maxSoloFailures is how many times an outcome may fail in a batch of its own. After
	// that, the outcome is at fault rather than the store.
	maxSoloFailures = 3
)

// An unsettled is an outcome that is not recorded yet.
type unsettled struct {
	outbound.Outcome
	written      chan struct{} // closed when it is recorded; nil if nothing waits for that
	soloFailures int           // failures in a batch of its own
}

// A settler records outcomes, in batches of those that are waiting. It drops none: it
// retries a failed batch until it succeeds. While the store fails, the gate is closed
// and endpoints claim nothing.
type settler struct {
	outbox       Outbox
	logger       *slog.Logger
	disableAfter time.Duration
	counters     *counters

	mu      sync.Mutex
	waiting []unsettled
	more    chan struct{} // capacity 1
	closed  bool
	failing chan struct{} // closed when the store works again; nil while it works
}

func newSettler(c Config, n *counters) *settler {
	return &settler{outbox: c.Outbox, logger: c.Logger, disableAfter: c.DisableAfter, counters: n,
		more: make(chan struct{}, 1)}
}

// add queues an outcome. If the outcome disables the webhook, add returns a channel
// that is closed when it is recorded; otherwise nil.
func (s *settler) add(o outbound.Outcome) <-chan struct{} {
	u := unsettled{Outcome: o}
	if o.Disable != "" {
		u.written = make(chan struct{})
	}

	s.counters.unsettled(1)
	s.mu.Lock()
	s.waiting = append(s.waiting, u)
	s.mu.Unlock()
	signal(s.more)
	return u.written
}

// close makes run return once all outcomes are recorded.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.more)
}

// gate returns nil while the store works, or a channel that is closed when it works
// again.
func (s *settler) gate() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// run records outcomes until close is called and none are left, or until ctx ends.
func (s *settler) run(ctx context.Context) {
	size, pause := settleBatch, minStoreRetry
	var logged time.Time
	for {
		batch, closed := s.take(size)
		if len(batch) == 0 {
			if closed {
				return
			}
			<-s.more
			continue
		}

		err := s.write(ctx, batch)
		if err == nil {
			size, pause = min(size*2, settleBatch), minStoreRetry
			continue
		}

		// Smaller batches isolate an outcome that cannot be recorded, so that the
		// others succeed without it.
		waiting, suspect := s.requeue(batch)
		size = max(1, len(batch)/2)
		if suspect && waiting > 1 {
			pause = minStoreRetry
		}
		if time.Since(logged) > maxStoreRetry {
			s.logger.Error("cannot record outcomes of webhook deliveries; retrying", "attempts", waiting, "error", err)
			logged = time.Now()
		}

		select {
		case <-time.After(pause):
			pause = min(2*pause, maxStoreRetry)
		case <-ctx.Done():
			s.logger.Error("stopped before outcomes were recorded; the deliveries will be sent again", "attempts", s.count())
			return
		}
	}
}

// take returns a batch of at most n outcomes, and whether the settler is closed. An
// outcome that failed on its own gets a batch of its own again.
func (s *settler) take(n int) (batch []unsettled, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.waiting))
	for i := range n {
		if s.waiting[i].soloFailures > 0 {
			n = max(i, 1)
			break
		}
	}
	batch, s.waiting = s.waiting[:n:n], s.waiting[n:]
	if len(s.waiting) == 0 {
		s.waiting = nil // free the recorded outcomes
	}
	return batch, s.closed
}

// requeue puts a failed batch at the end of the queue. It closes the gate, unless the
// batch is a single outcome that reached maxSoloFailures, which makes it suspect.
func (s *settler) requeue(batch []unsettled) (waiting int, suspect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(batch) == 1 {
		batch[0].soloFailures++
		suspect = batch[0].soloFailures >= maxSoloFailures
	}
	s.waiting = append(s.waiting, batch...)
	if suspect {
		s.open()
	} else if s.failing == nil {
		s.failing = make(chan struct{})
	}
	return len(s.waiting), suspect
}

// open opens the gate. The caller holds the lock.
func (s *settler) open() {
	if s.failing != nil {
		close(s.failing)
		s.failing = nil
	}
}

// count returns the number of waiting outcomes.
func (s *settler) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// write records a batch and opens the gate.
func (s *settler) write(ctx context.Context, batch []unsettled) error {
	outcomes := make([]outbound.Outcome, len(batch))
	for i, u := range batch {
		outcomes[i] = u.Outcome
	}
	if err := s.outbox.RecordOutcomes(ctx, outcomes, s.disableAfter); err != nil {
		return err
	}

	s.counters.unsettled(-len(batch))
	for _, u := range batch {
		if u.written != nil {
			close(u.written)
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
	return nil
}

// signal sends to a channel of capacity 1, unless a signal is pending already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
