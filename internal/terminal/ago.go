package terminal

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// farAway is from how far away a time is shown as a date.
const farAway = 30 * 24 * time.Hour

// justNow is less than what a person takes to read a line.
const justNow = 5 * time.Second

// Ago returns how long ago a time is, such as "3 minutes ago", or how far in the future, such
// as "in 2 days". Of a time far away, it returns the date in UTC.
func Ago(t ledger.Time, now time.Time) string {
	d := now.Sub(t.Std())
	switch {
	case d >= farAway || d <= -farAway:
		return t.Std().Format(time.DateOnly)
	case d > -justNow && d < justNow:
		return "just now"
	case d < 0:
		return "in " + inLargestUnit(-d)
	}
	return inLargestUnit(d) + " ago"
}

// inLargestUnit returns a duration in its largest unit, such as "2 hours".
func inLargestUnit(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return Plural(int64(d/day), "day")
	case d >= time.Hour:
		return Plural(int64(d/time.Hour), "hour")
	case d >= time.Minute:
		return Plural(int64(d/time.Minute), "minute")
	}
	return Plural(int64(d/time.Second), "second")
}
