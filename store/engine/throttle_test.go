package engine

import (
	"testing"
	"time"
)

// A simulation feeds a throttle with transactions, on a simulated clock.
type simulation struct {
	*throttle
	now time.Time
}

func newSimulation() *simulation { return &simulation{newThrottle(), time.Unix(1763629200, 0)} }

// run simulates a transaction of the given length, part of it for deliveries.
func (s *simulation) run(length, deliveries time.Duration, others bool) {
	begin := s.now
	s.now = begin.Add(length)
	s.observe(begin, s.now, deliveries, others)
}

func TestDeliveriesWaitOnlyIfOtherWritesKeepTheWriterBusy(t *testing.T) {
	const ms = time.Millisecond
	workloads := []struct {
		name string
		step func(s *simulation) // takes about 10 ms, repeated
		wait bool
	}{
		{"no writes", func(s *simulation) { s.now = s.now.Add(10 * ms) }, false},
		{"only deliveries", func(s *simulation) { s.run(10*ms, 6*ms, false) }, false},
		{"deliveries and few records", func(s *simulation) { s.run(10*ms, 7*ms, true) }, false},
		{"occasional records", func(s *simulation) { s.run(3*ms, 0, true); s.now = s.now.Add(7 * ms) }, false},
		{"constant records", func(s *simulation) { s.run(10*ms, 0, true) }, true},
		{"constant records and deliveries", func(s *simulation) { s.run(10*ms, 2*ms, true) }, true},
	}
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			s := newSimulation()
			for range 50 {
				w.step(s)
			}

			s.delay(s.now) // may let one claim begin
			if got := s.delay(s.now) > 0; got != w.wait {
				t.Errorf("a claim waits: got %t, want %t", got, w.wait)
			}

			s.now = s.now.Add(busyWindow + ms)
			if s.delay(s.now) > 0 {
				t.Error("a claim waits although the writer is idle")
			}
		})
	}
}

func TestDeliveriesGetATenthOfABusyWriterAtMost(t *testing.T) {
	s := newSimulation()
	begin, spent := s.now, time.Duration(0)
	for s.now.Sub(begin) < 20*time.Second {
		claim := time.Duration(0)
		if s.delay(s.now) <= 0 && s.busy {
			claim = 3 * time.Millisecond // includes recording its outcome
		}
		s.run(8*time.Millisecond+claim, claim, true)
		spent += claim
	}
	if share := float64(spent) / float64(s.now.Sub(begin)); share < 0.05 || share > 0.1 {
		t.Errorf("deliveries got %.3f of the writer's time, want 0.05 to 0.1", share)
	}
}
