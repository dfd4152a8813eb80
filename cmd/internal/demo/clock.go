package demo

import (
	"sync/atomic"
	"time"
)

// A clock runs behind the system clock, by a lag that can only shrink. So its time never
// goes back, and its wall clock and its monotonic clock agree.
type clock struct{ lag atomic.Int64 }

func newClock(lag time.Duration) *clock {
	c := new(clock)
	c.lag.Store(int64(lag))
	return c
}

// now returns the time, with a monotonic reading.
func (c *clock) now() time.Time { return time.Now().Add(-time.Duration(c.lag.Load())) }

// advanceTo moves the clock forward to a time, but not beyond the system clock. If it is
// later already, nothing changes. Only one goroutine may call it.
func (c *clock) advanceTo(t time.Time) {
	lag := max(time.Since(t), 0)
	c.lag.Store(min(c.lag.Load(), int64(lag)))
}
