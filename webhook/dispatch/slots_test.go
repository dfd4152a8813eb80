package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

// TestSlots shares four slots between healthy and unhealthy webhooks.
func TestSlots(t *testing.T) {
	s := newSlots(4)
	take := func(w *waiter, unhealthy bool) slot {
		t.Helper()
		got, ok := s.take(w, unhealthy)
		if !ok {
			t.Fatal("take returned no slot")
		}
		return got
	}
	wait := func(w *waiter, unhealthy bool) {
		t.Helper()
		if _, ok := s.take(w, unhealthy); ok {
			t.Fatal("take returned a slot")
		}
	}
	granted := func(w *waiter) slot {
		t.Helper()
		select {
		case got := <-w.granted:
			return got
		default:
			t.Fatal("no slot was granted")
		}
		return slot{}
	}

	a, b, c, d := newWaiter(), newWaiter(), newWaiter(), newWaiter()
	a1, a2 := take(a, true), take(a, true)
	wait(a, true) // half of the slots are taken
	wait(b, true)
	c1, _ := take(c, false), take(c, false)
	wait(c, false)
	wait(d, false)

	c1.release() // a and b came first, but are unhealthy
	c2 := granted(c)
	a1.release()
	a3 := granted(a)
	wait(a, true) // now behind the others
	c2.release()
	granted(d).release()
	a2.release()
	granted(b)
	s.cancel(a)
	a3.release()
	if len(a.granted) > 0 || len(s.waiting) > 0 {
		t.Error("a cancelled waiter is still in the queue")
	}

	// A slot that was granted to a cancelled waiter is not lost.
	take(c, false)
	take(c, false)
	wait(c, false)
	s.take(d, true)
	s.cancel(c)
	s.cancel(d)
	if s.free != 0 {
		t.Errorf("%d slots are free, want 0", s.free)
	}

	// A waiter whose webhook became healthy no longer waits for the slots of failing ones.
	s = newSlots(4)
	a1, a2 = take(a, true), take(a, true)
	wait(a, true)
	wait(b, true)
	take(a, false)
	if len(s.waiting) != 1 {
		t.Errorf("%d waiters, want 1: a has its slot", len(s.waiting))
	}
	take(c, false)
	wait(a, false)
	a1.release()
	granted(b)
	a2.release()
	granted(a)
}

func TestPauses(t *testing.T) {
	const s, m = time.Second, time.Minute
	now := ledger.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		what       string
		failures   int // in a row, each at the end of the previous pause
		retryAfter time.Duration
		pause      time.Duration // after the last failure
		probe      time.Duration // time until a probe, if a delivery is queued in the pause
	}{
		{"one", 1, 0, 0, 0},
		{"four", 4, 0, 0, 0},
		{"five", 5, 0, s, s},
		{"six", 6, 0, 2 * s, 2 * s},
		{"eight", 8, 0, 8 * s, 8 * s},
		{"ten", 10, 0, 32 * s, 10 * s},
		{"eleven", 11, 0, m, 10 * s},
		{"a thousand", 1000, 0, m, 10 * s},
		{"Retry-After of a second", 1, s, 5 * s, s},
		{"Retry-After of ten minutes", 1, 10 * m, 10 * m, s},
		{"Retry-After of a day", 1, 24 * time.Hour, time.Hour, s},
		{"Retry-After below the pause", 11, 10 * s, m, 10 * s},
	} {
		t.Run(c.what, func(t *testing.T) {
			now := now
			h := health{limit: 8, healthy: true}
			for range c.failures {
				now = max(now, h.pausedUntil)
				h.failed(now, h.start(), c.retryAfter)
			}

			if got := h.pausedUntil.Sub(now); got != c.pause {
				t.Errorf("pause of %v, want %v: %+v", got, c.pause, h)
			}
			if c.pause > 0 && (h.healthy || h.limit != 1) {
				t.Errorf("in the pause: healthy or more than one probe: %+v", h)
			}
			if h.ready(now) != (c.pause == 0) || !h.ready(h.pausedUntil) {
				t.Errorf("not ready at the end of the pause, or ready before: %+v", h)
			}
			h.probeWanted = true
			if c.pause > 0 && (h.ready(now.Add(c.probe-time.Millisecond)) || !h.ready(now.Add(c.probe))) {
				t.Errorf("no probe after %v, or one before: %+v", c.probe, h)
			}

			h.succeeded(now, 8)
			h.failed(max(now, h.pausedUntil), h.start(), 0)
			if h.paused(max(now, h.pausedUntil)) {
				t.Error("a success did not reset the failures")
			}
		})
	}
}

// TestFailuresDuringPause checks that when 64 requests fail at once, those after the
// fifth do not extend the pause.
func TestFailuresDuringPause(t *testing.T) {
	h := health{limit: 64}
	for range 64 {
		h.failed(1000, h.start(), 0)
	}
	if h.pausedUntil != 2000 {
		t.Errorf("paused until %d, want 2000", h.pausedUntil)
	}
}

// TestLimit checks how many requests at once a webhook gets after successes (s) and
// failures (f). Attempts start one after the other, or, in parentheses, together.
func TestLimit(t *testing.T) {
	for attempts, want := range map[string]struct {
		limit   int
		healthy bool
	}{
		"":                    {1, false},
		"s":                   {2, true},
		"sssssss":             {8, true},
		"ssssssssss":          {8, true},
		"sssssssf":            {4, true},
		"sssssssfss":          {6, true},
		"sssssssfssssf":       {4, true},
		"sssssssff":           {2, false},
		"sssssssffs":          {3, true},
		"sssssssfff":          {1, false},
		"sssssssffff":         {1, false},
		"f":                   {1, false},
		"sssssss(fsssssss)":   {8, true},
		"sssssss(fsf)":        {5, true},
		"sssssss(ff)":         {4, false},
		"sssssss(ffff)":       {4, false},
		"sssssss(ffff)f":      {1, false}, // the fifth in a row begins a pause
		"sssssss(fffff)":      {1, false},
		"sssssss(ffsf)(sfss)": {5, true},
	} {
		t.Run(attempts, func(t *testing.T) {
			h := health{limit: 1}
			together := 0
			for i, how := range attempts {
				if how == '(' {
					together = h.started + 1
					h.started += strings.IndexByte(attempts[i:], ')') - 1
				}
				if how == ')' {
					together = 0
				}
				if how != 's' && how != 'f' {
					continue
				}

				number := together
				if together == 0 {
					number = h.start()
				} else {
					together++
				}
				if how == 's' {
					h.succeeded(1000, 8)
				} else {
					h.failed(1000, number, 0)
				}
			}
			if h.limit != want.limit || h.healthy != want.healthy {
				t.Errorf("limit %d, healthy %t; want %d, %t", h.limit, h.healthy, want.limit, want.healthy)
			}
		})
	}
}

// TestForget checks that the stored health of webhooks does not grow without bound.
func TestForget(t *testing.T) {
	d := &Dispatcher{health: map[string]health{"old": {lastAttempt: 1}, "new": {lastAttempt: 1000}}}
	d.forget(500)
	if _, ok := d.health["new"]; len(d.health) != 1 || !ok {
		t.Errorf("health = %v, want new only", d.health)
	}
}

// TestDescriptorLimit configures more requests than the process has descriptors for.
func TestDescriptorLimit(t *testing.T) {
	if got := (Config{TotalInFlight: 1 << 30}).withDefaults().TotalInFlight; got > descriptorLimit() || got < 1 {
		t.Errorf("TotalInFlight = %d, want 1 to %d", got, descriptorLimit())
	}
}

// TestFaultPauseEndsIfTheClockGoesBack checks that a pause does not last until the time
// that a wrong clock showed.
func TestFaultPauseEndsIfTheClockGoesBack(t *testing.T) {
	now := ledger.Time(100 * 24 * time.Hour.Milliseconds())
	h := health{limit: 8}
	for range outbound.FailuresBeforePause {
		h.failed(now.Add(40*24*time.Hour), h.start(), 0)
	}
	h.probeWanted = true
	if h.paused(now) || !h.ready(now) {
		t.Errorf("still paused: %+v", h)
	}

	h.failed(now, h.start(), 0)
	if pause := h.pausedUntil.Sub(now); pause < firstPause || pause > longestPause {
		t.Errorf("the next pause lasts %v", pause)
	}
	h.pausedUntil = now.Add(40 * 24 * time.Hour)
	if h.pause(now, shortagePause); h.pausedUntil != now.Add(shortagePause) {
		t.Errorf("a shortage pauses for %v, want %v", h.pausedUntil.Sub(now), shortagePause)
	}
	h = health{probeWanted: true, pausedUntil: now.Add(time.Minute), lastAttempt: now.Add(40 * 24 * time.Hour)}
	if !h.ready(now) {
		t.Error("the probe waits for the time of the last attempt")
	}
}

// timeOnly is an outbox of which only the time is asked. A release of claims panics.
type timeOnly struct{ Outbox }

func (timeOnly) Now() ledger.Time { return 0 }

// TestFailuresAndClaims has attempts end in different ways. A single failure of a fast receiver releases none
// of the deliveries that were claimed in advance.
func TestFailuresAndClaims(t *testing.T) {
	const fast, slow = time.Millisecond, time.Second
	success, failure := completion{how: endedInSuccess, took: fast}, completion{how: endedInFailure}
	for name, test := range map[string]struct {
		completions []completion
		inAdvance   bool
	}{
		"before the first attempt": {nil, false},
		"a fast receiver":          {[]completion{success}, true},
		"a failure":                {[]completion{success, failure}, true},
		"now and then a failure":   {[]completion{success, failure, success, success, success, success, failure}, true},
		"two failures in a row":    {[]completion{success, failure, failure}, false},
		"a slow receiver":          {[]completion{{how: endedInSuccess, took: slow}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &attempter{cfg: Config{InFlight: 8, Outbox: timeOnly{}}}
			e := newEndpoint(a, nil, lifetime{}, "whk_x", health{limit: 8})
			e.queue = []job{{due: outbound.DueDelivery{Lease: 1}}}
			for _, c := range test.completions {
				c.number = e.health.start()
				e.inFlight++
				e.finished(c)
			}
			if n := e.prefetch(); (n > 0) != test.inAdvance {
				t.Errorf("%d deliveries are claimed in advance, with the health %+v", n, e.health)
			}
			if e.health.paused(0) {
				t.Error("the webhook is paused")
			}
		})
	}
}
