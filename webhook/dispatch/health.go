package dispatch

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
)

const (
	// failuresBeforeUnhealthy is the number of failures in a row after which a webhook
	// counts as failing. A single failure between successes only halves its limit.
	failuresBeforeUnhealthy = 2
	firstPause              = time.Second
	longestPause            = time.Minute
	// longestRequestedPause is the longest pause of a webhook that Retry-After can
	// cause. The next attempt of the delivery itself may be delayed for longer.
	longestRequestedPause = time.Hour
	// shortagePause is how long a webhook pauses if this process has no file
	// descriptors left.
	shortagePause = 2 * time.Second
	// forgetAfter is how long the dispatcher remembers the health of a webhook
	// without an endpoint. It is longer than any pause.
	forgetAfter = 2 * longestRequestedPause
	// minProbeGap and maxProbeGap bound the time between an attempt and a probe
	// that is sent before the pause ends, because a delivery was queued.
	minProbeGap = time.Second
	maxProbeGap = 10 * time.Second
)

// health describes how the recent attempts of a webhook went. An endpoint passes it on
// to the next one of the webhook.
type health struct {
	limit       int         // requests at once: 1 at first, plus 1 for each success, halved by a failure
	started     int         // attempts started so far
	halved      int         // started when the limit was last halved
	healthy     bool        // an attempt succeeded, and the last two did not both fail
	failures    int         // in a row, without those during a pause
	pausedUntil ledger.Time // no attempts before
	lastAttempt ledger.Time // when it ended
	probeWanted bool        // a delivery was queued during the pause
}

// paused reports whether the webhook is paused. A pause that seems longer than any began
// before the clock went back: it is over.
func (h *health) paused(now ledger.Time) bool {
	return now < h.pausedUntil && h.pausedUntil.Sub(now) <= longestRequestedPause
}

// ready reports whether the webhook may be sent to: it is not paused, or a probe is
// due. A ping or a redelivery gets a probe before the pause ends, because the
// receiver may just have been fixed.
func (h *health) ready(now ledger.Time) bool {
	gap := min(max(h.backoff(), minProbeGap), maxProbeGap)
	return !h.paused(now) || h.probeWanted && now.Sub(h.lastAttempt).Abs() >= gap
}

// backoff returns how long to pause after the failures so far. The webhook then gets one probe
// between two pauses.
func (h *health) backoff() time.Duration {
	n := h.failures - outbound.FailuresBeforePause
	if n < 0 {
		return 0
	}
	return min(firstPause<<min(n, 10), longestPause)
}

// succeeded records a success. The webhook gets at most maxLimit requests at once.
func (h *health) succeeded(now ledger.Time, maxLimit int) {
	h.lastAttempt, h.healthy, h.failures = now, true, 0
	h.limit = min(h.limit+1, maxLimit)
}

// start counts an attempt and returns its number, for failed.
func (h *health) start() (number int) {
	h.started++
	return h.started
}

// failed records that the attempt with this number failed, with the response's
// Retry-After or 0. It halves the limit, but only once for attempts that were in flight
// together, because they often fail for the same reason. If the webhook pauses, the
// limit allows one probe.
//
// Attempts that were in flight when the pause began do not count as failures; only
// their Retry-After can extend the pause.
func (h *health) failed(now ledger.Time, number int, retryAfter time.Duration) {
	var pause time.Duration
	if !h.paused(now) {
		h.failures++
		pause = h.backoff()
	}

	h.lastAttempt = now
	if h.failures >= failuresBeforeUnhealthy {
		h.healthy = false
	}
	if number > h.halved {
		h.limit, h.halved = max(1, h.limit/2), h.started
	}

	if retryAfter > 0 {
		pause = max(pause, min(max(retryAfter, minRetryAfter), longestRequestedPause))
	}
	h.pause(now, pause)
	if h.paused(now) {
		h.limit, h.healthy = 1, false
	}
}

// pause pauses the webhook for at least d.
func (h *health) pause(now ledger.Time, d time.Duration) {
	if !h.paused(now) {
		h.pausedUntil = 0
	}
	h.pausedUntil = max(h.pausedUntil, now.Add(d))
}

// resume ends the pause. If failures caused it, the limit allows one probe.
func (h *health) resume() { h.pausedUntil, h.probeWanted = 0, false }

// reset clears the failures and the pause, after a change of the webhook.
func (h *health) reset() {
	h.failures = 0
	h.resume()
}
