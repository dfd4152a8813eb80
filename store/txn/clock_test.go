package txn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// A handClock is a wall clock and a monotonic clock that tests move by hand.
type handClock struct {
	wall      time.Time
	monotonic time.Duration
}

func (h *handClock) clock(log *slog.Logger) *Clock {
	return NewClock(func() time.Time { return h.wall }, func() time.Duration { return h.monotonic }, log)
}

// passes lets time pass on both clocks.
func (h *handClock) passes(d time.Duration) {
	h.wall, h.monotonic = h.wall.Add(d), h.monotonic+d
}

// jumps sets the wall clock forward or back.
func (h *handClock) jumps(d time.Duration) { h.wall = h.wall.Add(d) }

// TestFaultClockFollowsOrNot moves the wall clock and checks how far the ledger's clock is
// from the time that has passed since the start, and whether anything may be recorded.
func TestFaultClockFollowsOrNot(t *testing.T) {
	const day = 24 * time.Hour
	type step struct {
		jump, pass time.Duration
		want       time.Duration // of the ledger's clock, ahead of the time since boot
		refused    bool
	}
	for name, test := range map[string]struct {
		steps []step
		logs  string // the first words of the messages
	}{
		"steady": {[]step{{0, time.Second, 0, false}, {0, 5 * day, 0, false}}, ""},
		"forward": {[]step{
			{10 * time.Second, 0, 10 * time.Second, false}, {time.Hour, 0, time.Hour + 10*time.Second, false},
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
		"as far ahead as it may": {[]step{{2 * time.Hour, 0, 2 * time.Hour, false}}, ""},
		"just too far ahead":     {[]step{{2*time.Hour + time.Second, 0, 0, true}}, "refuses"},
		"ahead, briefly": {[]step{
			{40 * day, 0, 0, true}, {0, 9 * time.Minute, 0, true}, {0, 59 * time.Second, 0, true}, {-40 * day, 0, 0, false},
		}, "refuses, right again"},
		"ahead for good": {[]step{
			{10 * day, 0, 0, true}, {0, 599 * time.Second, 0, true}, {0, time.Second, 10 * day, false},
			{0, day, 10 * day, false},
		}, "refuses, accepted"},
		"ahead, and moved while it is refused": {[]step{
			{10 * day, 0, 0, true}, {0, 9 * time.Minute, 0, true},
			{10 * day, 0, 0, true}, {0, 9 * time.Minute, 0, true}, {0, time.Minute, 20 * day, false},
		}, "refuses, refuses, accepted"},
		"ahead, then less so": {[]step{
			{20 * day, 0, 0, true}, {0, 9 * time.Minute, 0, true},
			{-10 * day, 0, 0, true}, {0, 9 * time.Minute, 0, true}, {0, time.Minute, 10 * day, false},
		}, "refuses, refuses, accepted"},
		"ahead, and corrected in small steps": {[]step{
			{10 * day, 5 * time.Minute, 0, true}, {-8 * time.Second, 5 * time.Minute, 10*day - 8*time.Second, false},
		}, "refuses, accepted"},
		"far back, briefly": {[]step{
			{-40 * day, 0, 0, true}, {0, time.Hour, 0, true}, {40 * day, 0, 0, false},
		}, "refuses, right again"},
		"far back for good": {[]step{{-40 * day, 0, 0, true}, {0, 39 * day, 0, true}}, "refuses"},
		"far back, then less so": {[]step{
			{-3 * time.Hour, 0, 0, true}, {2 * time.Hour, time.Minute, -30 * time.Second, false},
		}, "refuses, right again, went back"},
		"just too far back": {[]step{{-2*time.Hour - time.Second, 0, 0, true}}, "refuses"},
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
					c.Now()
				}
				h.passes(s.pass)
				c.Now()

				refused := c.Refusal() != nil
				if got := c.now.Sub(start) - h.monotonic; got != s.want || refused != s.refused {
					t.Errorf("step %d: the clock is ahead by %v (refused: %v), want %v", i, got, refused, s.want)
				}
				if lead := c.Status().Lead; lead != c.now.Sub(h.wall) {
					t.Errorf("step %d: the lead is %v, want %v", i, lead, c.now.Sub(h.wall))
				}
				for range 10 {
					c.Now() // logs nothing more
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
		{"nothing is recorded because", "refuses"}, {"no longer far off", "right again"}, {"is accepted", "accepted"},
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
	c := NewClock(time.Now, nil, slog.New(slog.DiscardHandler))
	_, before := c.source()
	time.Sleep(time.Millisecond)
	if _, after := c.source(); after-before < time.Millisecond {
		t.Errorf("monotonic time went from %v to %v", before, after)
	}
	if off := time.Since(c.Now().Std()).Abs(); off > time.Minute {
		t.Errorf("the clock is off by %v", off)
	}
}

func TestStampsAscend(t *testing.T) {
	h := &handClock{wall: time.UnixMilli(5000)}
	c := h.clock(slog.New(slog.DiscardHandler))
	c.Resume(5000, Accepted{})
	for i, s := range []struct{ now, want int64 }{
		{5000, 5002}, {5001, 5003}, {5003, 5003}, {5003, 5003}, {9000, 9000}, {4000, 9001}, {4000, 9002}, {9001, 9003},
	} {
		if got := c.Next(ledger.Time(s.now)); int64(got) != s.want {
			t.Errorf("stamp %d at %d is %d, want %d", i, s.now, got, s.want)
		}
	}
}

// TestFaultClockResumes starts the clock with what a database says. Then another process saves an
// accepted clock.
func TestFaultClockResumes(t *testing.T) {
	at := func(text string) ledger.Time {
		t.Helper()
		v := must.Get(time.Parse(time.DateTime, "2026-11-"+text+":00"))(t)
		return ledger.TimeOf(v)
	}
	const none = ""
	for name, test := range map[string]struct {
		newest       string // record; the wall clock shows the 20th, 09:00
		at, stamp    string // the accepted clock that is saved
		want         string
		refused      bool
		nextAt       string // is accepted then, for all records
		after        string
		refusedAfter bool
	}{
		"stopped for days":       {"01 09:00", none, none, "20 09:00", false, none, "20 09:00", false},
		"an hour behind":         {"20 10:00", none, none, "20 10:00", false, none, "20 10:00", false},
		"two hours behind":       {"20 11:00", none, none, "20 11:00", false, none, "20 11:00", false},
		"three hours behind":     {"20 12:00", none, none, "20 12:00", true, none, "20 12:00", true},
		"... accepted":           {"20 12:00", none, none, "20 12:00", true, "20 09:00", "20 09:00", false},
		"... another accepted":   {"20 12:00", none, none, "20 12:00", true, "10 09:00", "20 12:00", true},
		"was accepted":           {"29 09:00", "20 08:00", "29 09:00", "20 09:00", false, none, "20 09:00", false},
		"... and wrote much":     {"29 09:59", "20 08:00", "29 09:00", "20 09:00", false, none, "20 09:00", false},
		"... and went back":      {"29 09:00", "20 12:00", "29 09:00", "20 12:00", true, none, "20 12:00", true},
		"... an hour":            {"29 09:00", "20 10:00", "29 09:00", "20 10:00", false, none, "20 10:00", false},
		"... and is ahead again": {"29 12:00", "20 08:00", "29 09:00", "29 12:00", true, none, "29 12:00", true},
		"was accepted long ago":  {"19 09:00", "01 09:00", "10 09:00", "20 09:00", false, none, "20 09:00", false},
	} {
		h := &handClock{wall: at("20 09:00").Std()}
		c := h.clock(slog.New(slog.DiscardHandler))
		var saved Accepted
		if test.at != none {
			saved = Accepted{at(test.at), at(test.stamp)}
		}
		c.Resume(at(test.newest), saved)
		if refused := c.Refusal() != nil; c.Now() != at(test.want) || refused != test.refused {
			t.Errorf("%s: the clock is %s (refused: %v), want %s", name, c.Now(), refused, at(test.want))
		}

		if test.nextAt != none {
			c.Adopt(Accepted{at(test.nextAt), at(test.newest)})
		}
		if refused := c.Refusal() != nil; c.Now() != at(test.after) || refused != test.refusedAfter {
			t.Errorf("%s: then the clock is %s (refused: %v), want %s", name, c.Now(), refused, at(test.after))
		}
		if stamp := c.Next(c.Now()); stamp <= at(test.newest) {
			t.Errorf("%s: the next stamp is %s, not after %s", name, stamp, at(test.newest))
		}
	}
}

// TestFaultRefusalNamesTimes checks that each refusal names both times and what to do.
func TestFaultRefusalNamesTimes(t *testing.T) {
	for _, test := range []struct {
		wrong func(h *handClock, c *Clock)
		want  string
	}{
		{func(h *handClock, c *Clock) { h.jumps(240 * time.Hour); c.Now(); h.passes(4 * time.Minute) },
			"the system clock has jumped ahead: it shows 2026-11-30T09:04:00Z, and by the time since the machine booted " +
				"it is 2026-11-20T09:04:00Z: nothing is recorded until the clock is put right, or was steady for 10 minutes " +
				"(6m0s left)"},
		{func(h *handClock, _ *Clock) { h.jumps(-3 * time.Hour) },
			"the system clock is behind: it shows 2026-11-20T06:00:00Z, and the ledger's time, which never runs backwards, " +
				"is 2026-11-20T09:00:00Z: nothing is recorded until the clock is put right; if it is right, run " +
				"'ledgerd doctor --accept-clock'"},
		{func(h *handClock, c *Clock) { c.Follow(ledger.TimeOf(h.wall.Add(3 * time.Hour))) },
			"the system clock is behind: it shows 2026-11-20T09:00:00Z, and the ledger's time, which never runs backwards, " +
				"is 2026-11-20T12:00:00Z: nothing is recorded until the clock is put right; if it is right, run " +
				"'ledgerd doctor --accept-clock'"},
	} {
		h := &handClock{wall: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
		c := h.clock(slog.New(slog.DiscardHandler))
		test.wrong(h, c)
		if err := c.Refusal(); err == nil || err.Error() != test.want {
			t.Errorf("refused with\n%v, want\n%s", err, test.want)
		}
	}
}
