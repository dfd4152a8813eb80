package dispatch

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// TestSlots has healthy and unhealthy webhooks share four slots.
func TestSlots(t *testing.T) {
	s := newSlots(4)
	take := func(turn *waiter, unhealthy bool) slot {
		t.Helper()
		got, ok := s.take(turn, unhealthy)
		if !ok {
			t.Fatal("there is no slot")
		}
		return got
	}
	wait := func(turn *waiter, unhealthy bool) {
		t.Helper()
		if _, ok := s.take(turn, unhealthy); ok {
			t.Fatal("there is a slot")
		}
	}
	granted := func(turn *waiter) slot {
		t.Helper()
		select {
		case got := <-turn.granted:
			return got
		default:
			t.Fatal("nothing is granted")
		}
		return slot{}
	}
	a, b, c, d := newWaiter(), newWaiter(), newWaiter(), newWaiter()
	a1, a2 := take(a, true), take(a, true)
	wait(a, true) // half of them are taken
	wait(b, true)
	c1, _ := take(c, false), take(c, false)
	wait(c, false)
	wait(d, false)

	c1.release() // a and b were there first, and may not
	c2 := granted(c)
	a1.release()
	a3 := granted(a)
	wait(a, true) // from now on behind the others
	c2.release()
	granted(d).release()
	a2.release()
	granted(b)
	s.cancel(a)
	a3.release()
	if len(a.granted) > 0 || len(s.waiting) > 0 {
		t.Error("who has left waits still")
	}

	// What is granted to somebody who leaves is not lost.
	take(c, false)
	take(c, false)
	wait(c, false)
	s.take(d, true)
	s.cancel(c)
	s.cancel(d)
	if s.free != 0 {
		t.Errorf("%d are free", s.free)
	}
}

func TestPauses(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	now := ledger.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		what     string
		failures int // one after the other, each at the end of the pause before
		asked    time.Duration
		pause    time.Duration // after the last
		probe    time.Duration // and until what is queued meanwhile lets one through
	}{
		{"one", 1, 0, 0, 0},
		{"four", 4, 0, 0, 0},
		{"five", 5, 0, s, s},
		{"six", 6, 0, 2 * s, 2 * s},
		{"eight", 8, 0, 8 * s, 8 * s},
		{"ten", 10, 0, 32 * s, 10 * s},
		{"eleven", 11, 0, m, 10 * s},
		{"a thousand", 1000, 0, m, 10 * s},
		{"asked for hardly anything", 1, s, 5 * s, s},
		{"asked for ten minutes", 1, 10 * m, 10 * m, s},
		{"asked for a day", 1, 24 * h, h, s},
		{"asked for less than the pause", 11, 10 * s, m, 10 * s},
	} {
		t.Run(c.what, func(t *testing.T) {
			now := now
			k := health{limit: 8, healthy: true}
			for range c.failures {
				now = max(now, k.pausedUntil)
				k.failed(now, c.asked)
			}
			if got := k.pausedUntil.Sub(now); got != c.pause || k.healthy || k.limit != 1 {
				t.Errorf("it pauses for %v, want %v: %+v", got, c.pause, k)
			}
			if k.ready(now) != (c.pause == 0) || !k.ready(k.pausedUntil) {
				t.Errorf("it is not ready when the pause is over, or before: %+v", k)
			}
			k.probeWanted = true
			if c.pause > 0 && (k.ready(now.Add(c.probe-time.Millisecond)) || !k.ready(now.Add(c.probe))) {
				t.Errorf("a probe does not go after %v: %+v", c.probe, k)
			}
			k.succeeded(now, 8)
			k.failed(max(now, k.pausedUntil), 0)
			if k.paused(max(now, k.pausedUntil)) {
				t.Error("a success has not ended the row of failures")
			}
		})
	}
}

// TestManyUnderWay has all of many requests fail at once: that is one failure
// after the fifth, not many.
func TestManyUnderWay(t *testing.T) {
	k := health{limit: 64}
	for range 64 {
		k.failed(1000, 0)
	}
	if k.pausedUntil != 2000 {
		t.Errorf("it pauses until %d", k.pausedUntil)
	}
}

// TestForgetsOldStandings has what is known of webhooks not grow for ever.
func TestForgetsOldStandings(t *testing.T) {
	d := &Dispatcher{health: map[string]health{"old": {lastAttempt: 1}, "new": {lastAttempt: 1000}}}
	d.forget(500)
	if _, ok := d.health["new"]; len(d.health) != 1 || !ok {
		t.Errorf("it knows %v", d.health)
	}
}

// TestOwnLimit has a configuration ask for more than the process may open.
func TestOwnLimit(t *testing.T) {
	if got := (Config{TotalInFlight: 1 << 30}).withDefaults().TotalInFlight; got > descriptorLimit() || got < 1 {
		t.Errorf("%d requests in flight, %d are affordable", got, descriptorLimit())
	}
}
