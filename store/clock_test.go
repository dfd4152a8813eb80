package store

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A handClock is a wall clock and a monotonic clock that tests move by hand.
type handClock struct {
	wall      time.Time
	monotonic time.Duration
}

func (h *handClock) clock(log *slog.Logger) *clock {
	return newClock(func() time.Time { return h.wall }, func() time.Duration { return h.monotonic }, log)
}

// passes lets time pass on both clocks.
func (h *handClock) passes(d time.Duration) {
	h.wall, h.monotonic = h.wall.Add(d), h.monotonic+d
}

// jumps sets the wall clock forward or back.
func (h *handClock) jumps(d time.Duration) { h.wall = h.wall.Add(d) }

// TestFaultClockFollowsOrNot moves the wall clock and checks how far the ledger's clock is
// from the time that has passed since the start.
func TestFaultClockFollowsOrNot(t *testing.T) {
	const day = 24 * time.Hour
	type step struct {
		jump, pass time.Duration
		want       time.Duration // of the ledger's clock, ahead of monotonic time
		unproven   bool
	}
	for name, test := range map[string]struct {
		steps []step
		logs  string // the first words of the messages
	}{
		"steady": {[]step{{0, time.Second, 0, false}, {0, 5 * day, 0, false}}, ""},
		"small steps": {[]step{
			{10 * time.Second, 0, 10 * time.Second, false}, {9 * time.Second, 0, 19 * time.Second, false},
		}, ""},
		"an hour back": {[]step{
			{-time.Hour, 0, 0, false},
			{0, time.Hour, -30 * time.Minute, false},
			{0, 59 * time.Minute, -time.Hour + 30*time.Second, false},
			{0, time.Minute, -time.Hour, false},
			{0, time.Hour, -time.Hour, false},
		}, "went back, caught up"},
		"a little back": {[]step{
			{-900 * time.Millisecond, 0, 0, false}, {0, time.Minute, -900 * time.Millisecond, false},
		}, ""},
		"back and right again": {[]step{
			{-time.Hour, 0, 0, false}, {0, 10 * time.Second, -5 * time.Second, false}, {time.Hour, 0, 0, false},
		}, "went back, caught up"},
		"forward, briefly": {[]step{
			{40 * day, 0, 0, true}, {0, 30 * time.Second, 0, true}, {0, 29 * time.Second, 0, true}, {-40 * day, 0, 0, false},
		}, "jumped, over"},
		"forward for good": {[]step{
			{10 * day, 0, 0, true}, {0, 59 * time.Second, 0, true}, {0, time.Second, 10 * day, false}, {0, day, 10 * day, false},
		}, "jumped, follows"},
		"forward again while it is unproven": {[]step{
			{10 * day, 0, 0, true}, {0, 50 * time.Second, 0, true},
			{10 * day, 0, 0, true}, {0, 50 * time.Second, 0, true}, {0, 10 * time.Second, 20 * day, false},
		}, "jumped, jumped, follows"},
		"less far forward while it is unproven": {[]step{
			{20 * day, 0, 0, true}, {0, 50 * time.Second, 0, true},
			{-10 * day, 0, 0, true}, {0, 50 * time.Second, 0, true}, {0, 10 * time.Second, 10 * day, false},
		}, "jumped, jumped, follows"},
		"just too far forward": {[]step{
			{11 * time.Second, 0, 0, true}, {0, time.Minute, 11 * time.Second, false},
		}, "jumped, follows"},
		"far back, briefly": {[]step{
			{-40 * day, 0, 0, true}, {0, 50 * time.Second, 0, true}, {40 * day, 0, 0, false},
		}, "jumped, over"},
		"far back for good": {[]step{
			{-40 * day, 0, 0, true}, {0, 59 * time.Second, 0, true}, {0, time.Second, -40 * day, false},
		}, "jumped, follows"},
		"just too far back": {[]step{
			{-2*time.Hour - time.Second, 0, 0, true}, {0, time.Minute, -2*time.Hour - time.Second, false},
		}, "jumped, follows"},
		"as far back as it may": {[]step{
			{-2 * time.Hour, 0, 0, false}, {0, time.Minute, -30 * time.Second, false},
		}, "went back"},
		"often read while it is slow": {[]step{
			{-time.Hour, time.Microsecond, -500 * time.Nanosecond, false}, {0, time.Microsecond, -time.Microsecond, false},
		}, "went back"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := &handClock{wall: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
			start := h.wall
			c := h.clock(slog.New(slog.NewTextHandler(&log, nil)))

			for i, s := range test.steps {
				h.jumps(s.jump)
				if s.jump != 0 {
					c.read()
				}
				h.passes(s.pass)
				c.read()

				if got := c.now.Sub(start) - h.monotonic; got != s.want || c.status().Unproven != s.unproven {
					t.Errorf("step %d: the clock is ahead by %v (unproven: %v), want %v", i, got, c.status().Unproven, s.want)
				}
				if lead := c.status().Lead; lead != c.now.Sub(h.wall) {
					t.Errorf("step %d: the lead is %v, want %v", i, lead, c.now.Sub(h.wall))
				}
				for range 10 {
					c.read() // logs nothing more
				}
			}

			if got := eventsIn(log.String()); got != test.logs {
				t.Errorf("logged %q, want %q:\n%s", got, test.logs, log.String())
			}
		})
	}
}

// eventsIn names the messages of the clock in a log.
func eventsIn(log string) string {
	names := []struct{ part, name string }{
		{"system clock went back", "went back"}, {"clock has caught up with", "caught up"},
		{"the system clock has jumped", "jumped"}, {"is over", "over"}, {"follows the jump", "follows"},
	}
	var events []string
	for line := range strings.Lines(log) {
		for _, n := range names {
			if strings.Contains(line, n.part) {
				events = append(events, n.name)
			}
		}
	}
	return strings.Join(events, ", ")
}

// TestClockOfTimeNow checks that a clock without a source of monotonic time uses the
// monotonic reading in the results of wall.
func TestClockOfTimeNow(t *testing.T) {
	c := newClock(time.Now, nil, slog.New(slog.DiscardHandler))
	_, before := c.source()
	time.Sleep(time.Millisecond)
	if _, after := c.source(); after-before < time.Millisecond {
		t.Errorf("monotonic time went from %v to %v", before, after)
	}
	if off := time.Since(c.read().Std()).Abs(); off > time.Minute {
		t.Errorf("the clock is off by %v", off)
	}
}

func TestStampsAscend(t *testing.T) {
	h := &handClock{wall: time.UnixMilli(5000)}
	c := h.clock(slog.New(slog.DiscardHandler))
	c.resume(5000, 5000, false)
	for i, s := range []struct{ now, want int64 }{
		{5000, 5002}, {5001, 5003}, {5003, 5003}, {5003, 5003}, {9000, 9000}, {4000, 9001}, {4000, 9002}, {9001, 9003},
	} {
		if got := c.next(ledger.Time(s.now)); int64(got) != s.want {
			t.Errorf("stamp %d at %d is %d, want %d", i, s.now, got, s.want)
		}
	}
}

// TestFaultStampsAheadAreSaved checks that a restart recognises stamps that are ahead of the clock
// after hours of writes have moved them.
func TestFaultStampsAheadAreSaved(t *testing.T) {
	h := &handClock{wall: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	path := filepath.Join(t.TempDir(), "ledger.db")
	open := func() *Store {
		t.Helper()
		s, err := Open(t.Context(), path, Options{
			Now: func() time.Time { return h.wall }, Monotonic: func() time.Duration { return h.monotonic }})
		check(t, err)
		return s
	}
	s := open()
	_, err := s.CreateOrg(t.Context(), "acme")
	check(t, err)
	tokens := byte(0)
	token := func() {
		t.Helper()
		tokens++
		_, err := s.CreateToken(t.Context(), "acme", ledger.NewToken{Name: "me", Scope: ledger.Read}, [32]byte{tokens})
		check(t, err)
	}

	for _, jump := range []time.Duration{40 * 24 * time.Hour, -40 * 24 * time.Hour} {
		h.jumps(jump)
		s.Now()
		h.passes(holdTime)
		check(t, s.Settle(t.Context()))
		token()
	}
	for range 6 {
		s.clock.raiseStamp(s.clock.lastStamp().Add(30 * time.Minute))
		check(t, s.Settle(t.Context()))
	}
	token()
	check(t, s.Close())

	s = open()
	defer s.Close()
	if status := s.ClockStatus(); status.Unproven || status.Lead != 0 || status.StampLead < 40*24*time.Hour {
		t.Errorf("after the restart the status is %+v", status)
	}
}

// TestFaultRowOfAClockThatWasPutBack checks what is saved of a clock while stamps are ahead
// of it, and that nothing is forgotten while times are still to be corrected.
func TestFaultRowOfAClockThatWasPutBack(t *testing.T) {
	const minute = ledger.Time(60_000)
	for name, test := range map[string]struct {
		row        clockRow
		now, stamp ledger.Time
		want       clockRow
	}{
		"never put back": {clockRow{}, 200 * minute, 300 * minute, clockRow{}},
		"soon after":     {clockRow{0, 10, 900, false}, 10 + 30*minute, 900 + 30*minute, clockRow{0, 10, 900, false}},
		"later": {clockRow{0, 10, 900, false}, 11 + 30*minute, 900 + 30*minute,
			clockRow{0, 11 + 30*minute, 900, false}},
		"later, uncorrected":  {clockRow{0, 10, 900, true}, 11 + 30*minute, 900 + 30*minute, clockRow{0, 10, 900, true}},
		"far ahead":           {clockRow{0, 10, 900, true}, 10, 901 + 30*minute, clockRow{0, 10, 901 + 30*minute, true}},
		"reached":             {clockRow{0, 10, 900, false}, 1000, 1000, clockRow{}},
		"reached, far behind": {clockRow{7, 10, 900, false}, 1001, 1000, clockRow{behindSince: 7}},
		"reached, uncorrected": {clockRow{0, 10, 900, true}, 100 * minute, 100 * minute,
			clockRow{0, 10, 900, true}},
	} {
		if test.row.follow(test.now, test.stamp); test.row != test.want {
			t.Errorf("%s: the row is %+v, want %+v", name, test.row, test.want)
		}
	}
}
