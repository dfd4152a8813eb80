package dispatch

import (
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// After so many failures in a row a webhook pauses between single probes.
	failuresBeforePause = 5
	firstPause          = time.Second
	longestPause        = time.Minute
	// longestAskedPause bounds what Retry-After asks of the webhook as a whole. A
	// delivery's own next attempt may be asked to wait for longer.
	longestAskedPause = time.Hour
	// shortagePause is how long nothing is sent when this process has no file
	// descriptors left.
	shortagePause = 2 * time.Second
	// forgetAfter is how long it is remembered how a webhook fared; no pause is
	// longer.
	forgetAfter = 2 * longestAskedPause
	// The times between probes that go during a pause, because something was
	// queued: at least the first, and never more than the last.
	leastProbeGap = time.Second
	mostProbeGap  = 10 * time.Second
)

// A standing is how a webhook has fared, which its endpoints hand on to each
// other.
type standing struct {
	limit    int         // requests at once: begins with one, doubled by success
	healthy  bool        // the last attempt succeeded
	failures int         // in a row, those during a pause not counted
	until    ledger.Time // until then it pauses
	tried    ledger.Time // when the last attempt ended
	asked    bool        // something was queued for it while it was paused
}

func (s *standing) paused(now ledger.Time) bool { return now < s.until }

// ready reports whether a paused webhook may be sent to. Somebody who pings it,
// or sends again what it has missed, does not wait for the pause to end: it may
// well be that the receiver has been mended just now.
func (s *standing) ready(now ledger.Time) bool {
	gap := min(max(s.backoff(), leastProbeGap), mostProbeGap)
	return !s.paused(now) || s.asked && now >= s.tried.Add(gap)
}

// backoff returns how long to pause for the failures there were.
func (s *standing) backoff() time.Duration {
	n := s.failures - failuresBeforePause
	if n < 0 {
		return 0
	}
	return min(firstPause<<min(n, 10), longestPause)
}

func (s *standing) succeeded(now ledger.Time, most int) {
	s.tried, s.healthy, s.failures = now, true, 0
	s.limit = min(2*s.limit, most)
}

// failed notes a failure, and that the receiver has asked for some time, if it
// has. What was under way when the pause began only makes it longer by asking.
func (s *standing) failed(now ledger.Time, asked time.Duration) {
	var pause time.Duration
	if !s.paused(now) {
		s.failures++
		pause = s.backoff()
	}
	s.tried, s.healthy, s.limit = now, false, 1
	if asked > 0 {
		pause = max(pause, min(max(asked, minRetryAfter), longestAskedPause))
	}
	s.until = max(s.until, now.Add(pause))
}

// resume ends a pause, for one probe if the webhook had failed.
func (s *standing) resume() { s.until, s.asked = 0, false }

// renew forgets what failed before the webhook was changed.
func (s *standing) renew() {
	s.failures = 0
	s.resume()
}
