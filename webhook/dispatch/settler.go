package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	settleBatch = 500
	// The pauses between tries to reach a store that fails.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
	// After so many failures of its own an outcome is no sign any more that the
	// store fails.
	maxAlone = 3
)

// An unsettled is an outcome that is not written yet.
type unsettled struct {
	ledger.Outcome
	written chan struct{} // closed when it is; nil if nobody waits for that
	alone   int           // how often it has failed, in a batch of its own
}

// A settler writes outcomes, all that are waiting at once. It drops none: what
// cannot be written is tried again until it can, and while so, nothing new is
// claimed.
type settler struct {
	outbox       Outbox
	logger       *slog.Logger
	disableAfter time.Duration
	counters     *counters

	mu      sync.Mutex
	waiting []unsettled
	more    chan struct{} // capacity 1
	closed  bool
	failing chan struct{} // closed when it works again; nil while it does
}

func newSettler(c Config, n *counters) *settler {
	return &settler{outbox: c.Outbox, logger: c.Logger, disableAfter: c.DisableAfter, counters: n,
		more: make(chan struct{}, 1)}
}

// add takes an outcome that is to be written. The channel is closed when it is.
func (s *settler) add(o ledger.Outcome) <-chan struct{} {
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

// close lets run return once all is written.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	signal(s.more)
}

// gate returns nil while outcomes can be written, else a channel that is
// closed once they can.
func (s *settler) gate() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// run writes until close was called and nothing is left, or ctx ends.
func (s *settler) run(ctx context.Context) {
	size, pause := settleBatch, minPause
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
			size, pause = min(size*2, settleBatch), minPause
			continue
		}
		// Smaller batches find the one that cannot be written, if it is one; the
		// others then have their turn without it.
		waiting, suspect := s.giveBack(batch)
		size = max(1, len(batch)/2)
		if suspect && waiting > 1 {
			pause = minPause
		}
		if time.Since(logged) > maxPause {
			s.logger.Error("cannot write what came of webhook deliveries; trying again", "attempts", waiting, "error", err)
			logged = time.Now()
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		case <-ctx.Done():
			s.logger.Error("stopped before this was written: these deliveries will be sent again", "attempts", s.count())
			return
		}
	}
}

// take returns at most n outcomes to be written together. One that has failed
// alone stays alone.
func (s *settler) take(n int) (batch []unsettled, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, len(s.waiting))
	for i := range n {
		if s.waiting[i].alone > 0 {
			n = max(i, 1)
			break
		}
	}
	batch, s.waiting = s.waiting[:n:n], s.waiting[n:]
	if len(s.waiting) == 0 {
		s.waiting = nil // and with it what has been written
	}
	return batch, s.closed
}

// giveBack puts a batch that could not be written behind what waits. It closes
// the gate, unless the batch is a single outcome that is itself suspect.
func (s *settler) giveBack(batch []unsettled) (waiting int, suspect bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(batch) == 1 {
		batch[0].alone++
		suspect = batch[0].alone >= maxAlone
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

func (s *settler) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func (s *settler) write(ctx context.Context, batch []unsettled) error {
	outcomes := make([]ledger.Outcome, len(batch))
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

// signal leaves a signal in a channel that holds one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
