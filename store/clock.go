package store

import (
	"log/slog"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// maxStep is how far the wall clock may jump forward at once without having to
	// prove itself.
	maxStep = 10 * time.Second
	// MaxLead is how far the wall clock may go back without having to prove itself:
	// the ledger's clock then slows down until the wall clock has caught up.
	MaxLead = 2 * time.Hour
	// holdTime is how long a larger jump, in either direction, must hold before the
	// ledger's clock follows it.
	holdTime = time.Minute
	// minReportedLead is the smallest lead that is logged. Time servers correct less
	// than this all the time.
	minReportedLead = time.Second
)

// A clock is the ledger's clock: the time by which everything in a store is recorded
// and decided. It follows the wall clock, but not blindly:
//
//   - A jump forward by more than maxStep, measured against monotonic time, is ignored
//     until it has held for holdTime. Until then the clock follows monotonic time.
//   - If the wall clock goes back by up to MaxLead, the clock does not: it runs at half
//     speed until the wall clock has caught up. So it neither runs backwards nor stops.
//   - If the wall clock goes back further, the clock was wrong before, or is now. It
//     follows monotonic time until the jump has held for holdTime, and then goes back.
//     Only then does the ledger's time run backwards. The times in ids never do.
type clock struct {
	// source returns the wall clock, and the monotonic time since any fixed point.
	source func() (wall time.Time, monotonic time.Duration)
	log    *slog.Logger

	mu        sync.Mutex
	now       time.Time     // at the last reading
	wall      time.Time     // at the last reading
	monotonic time.Duration // at the last reading
	trust     trust
	// jump is the distance of the wall clock from the clock that must hold, and held is
	// for how long it has. They are valid if trust is unproven.
	jump, held time.Duration
	// dropped reports whether the clock went back and this has not been saved.
	dropped bool
	stamp   ledger.Time // the last one
	// skipped is the sum of the jumps forward that the clock has followed: time that
	// it showed, but in which nothing was done.
	skipped time.Duration
}

// trust says what the clock thinks of the wall clock.
type trust int

const (
	trusted  trust = iota // the wall clock is right
	behind                // the wall clock is behind by at most MaxLead
	unproven              // the wall clock has jumped, and must hold
)

// newClock returns a clock that starts at the wall clock. If monotonic is nil, the times
// that wall returns are expected to have a monotonic reading.
func newClock(wall func() time.Time, monotonic func() time.Duration, log *slog.Logger) *clock {
	c := &clock{log: log}
	if monotonic != nil {
		c.source = func() (time.Time, time.Duration) { return wall(), monotonic() }
	} else {
		start := wall()
		c.source = func() (time.Time, time.Duration) {
			t := wall()
			return t, t.Sub(start)
		}
	}

	at, elapsed := c.source()
	c.now, c.wall, c.monotonic = at.Round(0), at.Round(0), elapsed
	return c
}

// resume makes the clock continue from the time last, if the wall clock is behind it,
// and the stamps after the last one. held reports whether the wall clock has been far
// behind for holdTime, as other processes saw it.
func (c *clock) resume(last, stamp ledger.Time, held bool) {
	c.mu.Lock()
	c.stamp = stamp + 1 // the ids of one millisecond are in order within a process only
	switch lead := last.Std().Sub(c.now); {
	case lead <= 0:
	case lead > MaxLead && held:
		c.dropped = true
	default:
		c.now = last.Std()
	}
	c.mu.Unlock()
	c.read()
}

// read returns the ledger's time.
func (c *clock) read() ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, monotonic := c.source()
	elapsed := max(monotonic-c.monotonic, 0)
	c.wall, c.monotonic = wall.Round(0), monotonic

	expected := c.now.Add(elapsed)
	switch offset := c.wall.Sub(expected); {
	case offset > maxStep || offset < -MaxLead:
		c.now = expected
		c.doubt(offset, elapsed)
	case offset >= 0:
		c.now = c.wall
		c.setTrust(trusted)
	default:
		if c.now = c.now.Add(elapsed / 2); c.now.Before(c.wall) {
			c.now = c.wall
		}
		c.setTrust(behind)
	}
	return ledger.TimeOf(c.now)
}

// doubt follows the wall clock, which has jumped by offset, if the jump has held. elapsed
// is the time since the last reading.
func (c *clock) doubt(offset, elapsed time.Duration) {
	if c.trust != unproven || (offset-c.jump).Abs() > maxStep {
		c.jump, c.held = offset, 0
		c.setTrust(unproven)
		c.log.Warn("the system clock has jumped; the ledger ignores this until it has held", "by", offset.Round(time.Second),
			"hold", holdTime, "system_time", ledger.TimeOf(c.wall), "ledger_time", ledger.TimeOf(c.now))
		return
	}
	if c.held += elapsed; c.held < holdTime {
		return
	}

	c.log.Warn("the ledger follows the jump of the system clock", "by", offset.Round(time.Second),
		"ledger_time", ledger.TimeOf(c.wall), "ids_ahead_until", max(c.stamp, ledger.TimeOf(c.now)))
	c.dropped = c.dropped || offset < 0
	c.skipped += max(offset, 0)
	c.now, c.trust = c.wall, trusted
}

// setTrust sets what the clock thinks of the wall clock, and logs the begin and the end
// of a lead.
func (c *clock) setTrust(to trust) {
	from := c.trust
	lead := c.now.Sub(c.wall)
	switch {
	case to == behind && from != behind && lead < minReportedLead:
		to = trusted // it catches up soon
	case to == behind && from != behind:
		c.log.Warn("the system clock went back; the ledger's clock runs at half speed until it has caught up",
			"lead", lead.Round(time.Millisecond), "system_time", ledger.TimeOf(c.wall), "ledger_time", ledger.TimeOf(c.now))
	case to == trusted && from == behind:
		c.log.Info("the system clock has caught up with the ledger's clock")
	case to == trusted && from == unproven:
		c.log.Info("the jump of the system clock is over; the ledger has ignored it")
	}
	c.trust = to
}

// next returns the stamp of a write at the given time: the time in its ids, by which
// events and attestations are ordered. It is the ledger's time, unless an earlier stamp
// was later. Only the writer calls it.
func (c *clock) next(now ledger.Time) ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now < c.stamp {
		now = c.stamp + 1
	}
	c.stamp = now
	return now
}

// follow makes the next stamp later than the last one of all processes, if that is of another.
func (c *clock) follow(last ledger.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last > c.stamp {
		c.stamp = last + 1 // the ids of one millisecond are in order within a process only
	}
}

// raiseStamp makes the next stamp later than one of another process.
func (c *clock) raiseStamp(other ledger.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stamp = max(c.stamp, other)
}

// ClockStatus says how the ledger's clock and the system clock differ.
type ClockStatus struct {
	// Lead is how far the ledger's clock is ahead of the system clock. It is negative
	// while the ledger ignores a jump forward.
	Lead time.Duration
	// Unproven reports whether the system clock has jumped, and the ledger ignores
	// that until it has held for a minute.
	Unproven bool
	// StampLead is how far the times in new ids are ahead of the ledger's clock,
	// because that was put back.
	StampLead time.Duration
}

func (c *clock) status() ClockStatus {
	now := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	return ClockStatus{Lead: c.now.Sub(c.wall), Unproven: c.trust == unproven, StampLead: max(c.stamp.Sub(now), 0)}
}

// wallTime returns the wall clock, or the ledger's time if the wall clock is unproven.
func (c *clock) wallTime() ledger.Time {
	c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trust == unproven {
		return ledger.TimeOf(c.now)
	}
	return ledger.TimeOf(c.wall)
}

// systemTime returns the wall clock at the last reading.
func (c *clock) systemTime() ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ledger.TimeOf(c.wall)
}

// takeDropped reports whether the clock went back since the last call.
func (c *clock) takeDropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped := c.dropped
	c.dropped = false
	return dropped
}

// untakeDropped makes the next call of takeDropped return true.
func (c *clock) untakeDropped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = true
}

// isFarBehind reports whether the wall clock is unproven and behind.
func (c *clock) isFarBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trust == unproven && c.jump < 0
}

// totalSkipped returns the sum of the jumps forward that the clock has followed.
func (c *clock) totalSkipped() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skipped
}

func (c *clock) lastStamp() ledger.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stamp
}

// A savedClock is the row of the table clock: what must be known of the clock across
// restarts.
type savedClock struct {
	mu sync.Mutex // held by correctTimes
	clockRow
}

type clockRow struct {
	// behindSince is the system clock when it was first seen far behind. It is 0 if it
	// is not.
	behindSince ledger.Time
	// putRightAt is the time to which the ledger's clock was last put back, or later once
	// no times are to be corrected. It is 0 if stamps are not ahead of the clock.
	putRightAt ledger.Time
	// aheadUntil is a time up to which stamps may be ahead of the clock since then.
	aheadUntil ledger.Time
	// pending reports whether times after putRightAt are still to be corrected.
	pending bool
}
