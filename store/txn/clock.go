package txn

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// MaxClockOffset is how far the wall clock may be from where it should be: the ledger's clock
	// follows one that is ahead at once, and slows down for one that is behind.
	MaxClockOffset = 2 * time.Hour
	// steadyTime is how long a wall clock that has jumped ahead must be steady to be accepted,
	// and maxDrift how far it may move in this time.
	steadyTime = 10 * time.Minute
	maxDrift   = 10 * time.Second
	// minReportedLead is the smallest lead that is logged. Time servers correct less
	// than this all the time.
	minReportedLead = time.Second
	// saveAccepted is how often the time is saved after a clock was accepted, so that a restart
	// notices if the wall clock has gone back since.
	saveAccepted = 30 * time.Minute
	// stampSlack is how far stamps may have passed those that were accepted, by one millisecond
	// per write. It must be more than saveAccepted, and less than MaxClockOffset.
	stampSlack = time.Hour
)

// A Clock is the ledger's clock: the time by which everything in a store is recorded
// and decided. It follows the wall clock, but not blindly. It measures it against the time
// since the machine booted:
//
//   - It follows a wall clock that is ahead by up to MaxClockOffset at once.
//   - If the wall clock goes back by up to MaxClockOffset, the clock does not: it runs at half
//     speed until the wall clock has caught up. So it neither runs backwards nor stops.
//   - If the wall clock is further off, the clock goes on with the time since boot, and
//     nobody may record. A wall clock that is ahead is accepted once it was steady for
//     steadyTime. One that is behind is accepted by an operator, and only then does the
//     ledger's time run backwards. The times in ids never do.
type Clock struct {
	// source returns the wall clock, and the time since boot or any other fixed point.
	source func() (wall time.Time, boot time.Duration)
	log    *slog.Logger

	mu    sync.Mutex
	now   time.Time     // at the last reading
	wall  time.Time     // at the last reading
	boot  time.Duration // at the last reading
	state clockState
	// offset is how far the wall clock was ahead when it jumped, and steady for how long it has
	// been so. They are valid if state is jumped.
	offset, steady time.Duration

	stamp    ledger.Time // the last one
	other    ledger.Time // the last one that another process is known to have given
	accepted Accepted    // the last one that was read
}

// clockState says what the clock thinks of the wall clock.
type clockState int

const (
	right  clockState = iota
	slow              // the wall clock is behind by at most MaxClockOffset
	jumped            // the wall clock is off by more than MaxClockOffset
)

// NewClock returns a clock that starts at the wall clock. If boot is nil, the times that wall
// returns are expected to have a monotonic reading.
func NewClock(wall func() time.Time, boot func() time.Duration, log *slog.Logger) *Clock {
	c := &Clock{log: log}
	if boot != nil {
		c.source = func() (time.Time, time.Duration) { return wall(), boot() }
	} else {
		start := wall()
		c.source = func() (time.Time, time.Duration) {
			t := wall()
			return t, t.Sub(start)
		}
	}

	at, elapsed := c.source()
	c.now, c.wall, c.boot = at.Round(0), at.Round(0), elapsed
	return c
}

// Resume makes the clock continue from the newest record, if the wall clock is behind it, and
// the stamps after the newest one.
func (c *Clock) Resume(newest ledger.Time, accepted Accepted) {
	c.mu.Lock()
	c.stamp = newest + 1 // the ids of one millisecond are in order within a process only
	c.accepted = accepted
	if at := accepted.TimeOf(newest).Std(); at.After(c.now) {
		c.now = at
	}
	c.mu.Unlock()
	c.Now()
}

// Now returns the ledger's time.
func (c *Clock) Now() ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, boot := c.source()
	elapsed := max(boot-c.boot, 0)
	c.wall, c.boot = wall.Round(0), boot

	expected := c.now.Add(elapsed)
	switch offset := c.wall.Sub(expected); {
	case offset.Abs() > MaxClockOffset:
		c.now = expected
		c.doubt(offset, elapsed)
	case offset >= 0:
		c.now = c.wall
		c.setState(right)
	default:
		if c.now = c.now.Add(elapsed / 2); c.now.Before(c.wall) {
			c.now = c.wall
		}
		c.setState(slow)
	}
	return ledger.TimeOf(c.now)
}

// doubt notes that the wall clock is off by offset, and accepts it if it is ahead and has been
// steady. elapsed is the time since the last reading.
func (c *Clock) doubt(offset, elapsed time.Duration) {
	if c.state != jumped || (offset-c.offset).Abs() > maxDrift {
		c.offset, c.steady, c.state = offset, 0, jumped
		c.warn()
		return
	}
	if c.steady += elapsed; offset > 0 && c.steady >= steadyTime {
		c.accept("it was steady for ten minutes")
	}
}

// warn logs that nothing is recorded.
func (c *Clock) warn() {
	c.log.Warn("nothing is recorded because of the system clock", "reason", c.reason())
}

// accept follows the wall clock, which has jumped.
func (c *Clock) accept(why string) {
	c.log.Warn("the system clock is accepted", "why", why, "former_time", ledger.TimeOf(c.now),
		"ledger_time", ledger.TimeOf(c.wall), "ids_from", max(c.stamp, ledger.TimeOf(c.wall)))
	c.now, c.state = c.wall, right
}

// setState sets what the clock thinks of the wall clock, and logs the begin and the end
// of a lead.
func (c *Clock) setState(to clockState) {
	from := c.state
	if from == jumped {
		c.log.Info("the ledger records again: the system clock is no longer far off")
	}
	lead := c.now.Sub(c.wall)
	switch {
	case to == slow && from != slow && lead < minReportedLead:
		to = right // it catches up soon
	case to == slow && from != slow:
		c.log.Warn("the system clock went back; the ledger's clock runs at half speed until it has caught up",
			"lead", lead.Round(time.Millisecond), "system_time", ledger.TimeOf(c.wall), "ledger_time", ledger.TimeOf(c.now))
	case to == right && from == slow:
		c.log.Info("the system clock has caught up with the ledger's clock")
	}
	c.state = to
}

// Refusal returns why nothing may be recorded because of the wall clock, or nil.
func (c *Clock) Refusal() error {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != jumped && !c.isPassed() {
		return nil
	}
	return ledger.Errorf(ledger.CodeClockJumped, "%s", c.reason())
}

// isPassed reports whether another process has recorded at a time that is far ahead.
func (c *Clock) isPassed() bool {
	return c.other.Std().Sub(c.now) > MaxClockOffset && !c.accepted.covers(c.other)
}

// reason says how the wall clock is off, and what to do.
func (c *Clock) reason() string {
	if c.state == jumped && c.offset > 0 {
		return "the system clock has jumped ahead: it shows " + shown(c.wall) + ", and by the time since the machine " +
			"booted it is " + shown(c.now) + ": nothing is recorded until the clock is put right, or was steady for " +
			"10 minutes (" + (steadyTime - c.steady).Round(time.Second).String() + " left)"
	}
	at := c.now
	if c.isPassed() {
		at = c.other.Std()
	}
	return "the system clock is behind: it shows " + shown(c.wall) + ", and the ledger's time, which never runs " +
		"backwards, is " + shown(at) + ": nothing is recorded until the clock is put right; if it is right, run " +
		"'ledgerd doctor --accept-clock'"
}

// shown returns a time as errors show it.
func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Next returns the stamp of a write at the given time: the time in its ids, by which
// events and attestations are ordered. It is the ledger's time, unless an earlier stamp
// was later. Only the writer calls it.
func (c *Clock) Next(now ledger.Time) ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now < c.stamp {
		now = c.stamp + 1
	}
	c.stamp = now
	return now
}

// Follow makes the next stamp later than the last one of all processes, if that is of another.
func (c *Clock) Follow(last ledger.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last <= c.stamp {
		return
	}
	before := c.isPassed()
	c.other, c.stamp = last, last+1 // the ids of one millisecond are in order within a process only
	if c.isPassed() && !before {
		c.warn()
	}
}

// SystemTime returns the wall clock.
func (c *Clock) SystemTime() ledger.Time {
	c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return ledger.TimeOf(c.wall)
}

// LastStamp returns the last stamp that was given or is known.
func (c *Clock) LastStamp() ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp
}

// IsWatched reports whether other processes matter: an operator may accept the wall clock, or
// stamps are or were ahead of the clock.
func (c *Clock) IsWatched() bool {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == jumped || c.stamp > now || c.accepted.At != 0
}

// Adopt takes note of the accepted clock in the database. If that is new, and the wall clock has
// jumped to it, the clock follows.
func (c *Clock) Adopt(a Accepted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a == c.accepted {
		return
	}
	c.accepted = a
	if c.state == jumped && c.wall.Sub(a.At.Std()).Abs() <= MaxClockOffset {
		c.accept("'ledgerd doctor --accept-clock' said that it is right")
	}
}

// DueForSave returns what is to be saved of an accepted clock: a later time, or nothing once the
// clock has reached the stamps.
func (c *Clock) DueForSave() (a Accepted, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := ledger.TimeOf(c.now)
	if c.stamp > now {
		a = Accepted{now, c.stamp}
	}
	return a, c.state != jumped && c.accepted.At != 0 &&
		max(now.Sub(c.accepted.At), c.stamp.Sub(c.accepted.Stamp)) > saveAccepted
}

// ClockStatus says how the ledger's clock and the system clock differ.
type ClockStatus struct {
	// Lead is how far the ledger's clock is ahead of the system clock. It is negative
	// while the ledger ignores a jump forward.
	Lead time.Duration
	// StampLead is how far the times in new ids are ahead of the ledger's clock,
	// because that was put back.
	StampLead time.Duration
}

// Status returns how the ledger's clock and the system clock differ.
func (c *Clock) Status() ClockStatus {
	now := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClockStatus{Lead: c.now.Sub(c.wall), StampLead: max(c.stamp.Sub(now), 0)}
}

// WallTime returns the wall clock, or the ledger's time if that is earlier: the wall clock has jumped
// ahead.
func (c *Clock) WallTime() ledger.Time { return min(c.Now(), c.SystemTime()) }

// An Accepted is the row of the table clock: the time that an operator has accepted although
// newer records exist, or a later time, and the newest stamp at this time. It is zero if stamps are
// not ahead of the clock.
type Accepted struct{ At, Stamp ledger.Time }

// covers reports whether the newest records, at a stamp, were known when the clock was accepted.
func (a Accepted) covers(stamp ledger.Time) bool {
	return a.At != 0 && stamp <= a.Stamp.Add(stampSlack)
}

// TimeOf returns the time of the newest records, at a stamp, by the clock that was accepted.
func (a Accepted) TimeOf(stamp ledger.Time) ledger.Time {
	if a.covers(stamp) {
		return min(stamp, a.At)
	}
	return stamp
}
