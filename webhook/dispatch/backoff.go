package dispatch

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// DefaultSchedule returns how long to wait before each retry, unless the
// configuration says otherwise: some three days in all.
func DefaultSchedule() []time.Duration {
	const m, h = time.Minute, time.Hour
	return []time.Duration{5 * time.Second, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h, 14 * h, 20 * h, 24 * h}
}

const (
	jitter = 0.2 // of the time to wait, either way
	// The bounds within which a receiver may say when to come again.
	minRetryAfter = 5 * time.Second
	maxRetryAfter = 24 * time.Hour
)

// retryIn returns how long to wait after a failed try, of which there were
// some before it, or false if it was the last. A receiver that asks for more
// time than the schedule gives gets it; one that asks for less does not, or
// the retries of days would be gone within minutes.
func retryIn(schedule []time.Duration, tries int, retryAfter time.Duration) (time.Duration, bool) {
	if tries >= len(schedule) {
		return 0, false
	}
	wait := time.Duration(float64(schedule[tries]) * (1 - jitter + 2*jitter*rand.Float64()))
	if retryAfter > 0 {
		asked := min(max(retryAfter, minRetryAfter), maxRetryAfter)
		later := time.Duration(float64(asked) * (1 + jitter*rand.Float64()))
		wait = max(wait, min(later, maxRetryAfter))
	}
	return wait, true
}

// parseRetryAfter reads the header Retry-After, seconds or a date. It is 0
// where there is none, and the shortest time where that has passed.
func parseRetryAfter(value string, now ledger.Time) time.Duration {
	// More seconds than 64 bits hold are the most that 64 bits hold.
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return max(time.Duration(min(seconds, uint64(maxRetryAfter/time.Second)))*time.Second, minRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now.Std()), minRetryAfter)
	}
	return 0
}
