package dispatch

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// DefaultSchedule returns the default delay before each retry. The delays add up to
// about three days.
func DefaultSchedule() []time.Duration {
	const m, h = time.Minute, time.Hour
	return []time.Duration{5 * time.Second, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}
}

const (
	jitter = 0.2 // fraction of a delay by which it is randomly shorter or longer
	// minRetryAfter and maxRetryAfter bound the Retry-After of a receiver.
	minRetryAfter = 5 * time.Second
	maxRetryAfter = 24 * time.Hour
)

// retryIn returns how long to wait after a failed attempt, given the number of earlier
// tries, or false if no retry is left. Retry-After can only extend the scheduled delay:
// otherwise a receiver could use up all retries within minutes.
func retryIn(schedule []time.Duration, tries int, retryAfter time.Duration) (time.Duration, bool) {
	if tries >= len(schedule) {
		return 0, false
	}
	wait := time.Duration(float64(schedule[tries]) * (1 - jitter + 2*jitter*rand.Float64()))
	if retryAfter > 0 {
		requested := min(max(retryAfter, minRetryAfter), maxRetryAfter)
		later := time.Duration(float64(requested) * (1 + jitter*rand.Float64()))
		wait = max(wait, min(later, maxRetryAfter))
	}
	return wait, true
}

// parseRetryAfter parses a Retry-After header: seconds or a date (RFC 9110, section
// 10.2.3). It returns 0 if the value is missing or invalid, and minRetryAfter if it is
// shorter or in the past.
func parseRetryAfter(value string, now ledger.Time) time.Duration {
	// If the value is out of range, seconds is the largest uint64.
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return max(time.Duration(min(seconds, uint64(maxRetryAfter/time.Second)))*time.Second, minRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now.Std()), minRetryAfter)
	}
	return 0
}
