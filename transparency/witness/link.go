package witness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/transparency"
)

const (
	// patience is how long the signer waits for a witness.
	patience = 2 * time.Second

	minBackoff, maxBackoff = time.Second, 5 * time.Minute
	// resubmitAfter is when a checkpoint is cosigned again although nothing has grown. It is
	// a little less than an hour, so that an hourly check does not come too early.
	resubmitAfter = 55 * time.Minute
)

// A backoff says when something that has failed is tried again.
type backoff struct {
	failures int
	until    time.Time
}

// fail counts a failure. The wait doubles with each, and is at least atLeast.
func (b *backoff) fail(now time.Time, atLeast time.Duration) {
	wait := min(maxBackoff, minBackoff<<min(b.failures, 10))
	b.failures++
	b.until = now.Add(max(atLeast, wait*3/4+rand.N(wait/2)))
}

// A remote is a witness that is asked for cosignatures.
type remote struct {
	trustpolicy.Witness
	slots chan struct{}

	mu      sync.Mutex
	backoff backoff // while it does not answer
	slow    bool    // nobody waits for it, since it took too long
}

// A link is what is known about one log at one witness.
type link struct {
	to *remote

	mu   sync.Mutex
	busy bool
	size int64 // that the witness has cosigned, by what it says
	text string
	line string // the cosignature of text
	// cosigned is the size of text.
	cosigned int64
	given    bool // line was returned to the signer
	at       time.Time
	backoff  backoff // while it refuses the log
	err      string
	errAt    time.Time
	fails    uint64
}

// begin reports whether the witness is to be asked about a checkpoint now. If so, the link is
// busy until end.
func (l *link) begin(text string, now time.Time) bool {
	l.to.mu.Lock()
	down := now.Before(l.to.backoff.until)
	l.to.mu.Unlock()

	l.mu.Lock()
	defer l.mu.Unlock()
	done := l.text == text && now.Sub(l.at) < resubmitAfter
	if l.busy || done || down || now.Before(l.backoff.until) {
		return false
	}
	l.busy = true
	return true
}

// waiting reports whether there is something to do for a checkpoint: a cosignature that the
// signer does not have, or a witness that can be asked.
func (l *link) waiting(text string, now time.Time) bool {
	l.mu.Lock()
	late := l.text == text && !l.given
	l.mu.Unlock()
	if late {
		return true
	}
	if !l.begin(text, now) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	return true
}

// take returns the cosignature of a checkpoint, or "".
func (l *link) take(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text != text {
		return ""
	}
	l.given = true
	return l.line
}

// An alarmError means that a witness knows another history of a log.
type alarmError struct{ text string }

func (e *alarmError) Error() string { return e.text }

// submit asks the witness to cosign a checkpoint, and remembers what it answers. It returns
// an *alarmError if the witness knows another history; other errors are only remembered.
func (l *link) submit(ctx context.Context, c *client, s transparency.Signed) *alarmError {
	a, err := l.exchange(ctx, c, s)
	now := time.Now()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
	if err == nil {
		l.text, l.line, l.cosigned, l.given = s.Text(), a.line, s.Size, false
		l.size, l.at = s.Size, now
		l.err, l.backoff = "", backoff{}
		l.to.answered()
		return nil
	}

	l.err, l.errAt = err.Error(), now
	l.fails++
	alarm, isAlarm := errors.AsType[*alarmError](err)
	switch {
	case isAlarm:
		return alarm
	case ctx.Err() != nil: // stopping
	case a.status == 0 || a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		l.to.failed(now, a.retryAfter)
	default:
		l.backoff.fail(now, a.retryAfter)
	}
	return nil
}

func (r *remote) isSlow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slow
}

// took records how long a request took.
func (r *remote) took(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = d >= patience
}

func (r *remote) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backoff = backoff{}
}

func (r *remote) failed(now time.Time, atLeast time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.After(r.backoff.until) { // requests at the same time count as one failure
		r.backoff.fail(now, atLeast)
	}
}

// exchange asks the witness, and once again if it has cosigned another size than remembered.
func (l *link) exchange(ctx context.Context, c *client, s transparency.Signed) (answer, error) {
	select {
	case l.to.slots <- struct{}{}:
		defer func() { <-l.to.slots }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}

	l.mu.Lock()
	old := l.size
	l.mu.Unlock()
	for attempt := 1; ; attempt++ {
		r := request{old: min(old, s.Size), note: s.Note}
		var err error
		if r.proof, err = s.Prove(ctx, r.old); err != nil {
			return answer{status: http.StatusConflict}, err
		}
		a, err := c.add(ctx, l.to.Witness, r, s)
		switch {
		case err != nil:
			return a, err
		case a.status == http.StatusOK:
			return a, nil
		case a.status == http.StatusUnprocessableEntity:
			return a, &alarmError{fmt.Sprintf("witness %s refuses the history of the log, of which it has cosigned %d events: "+
				"it has seen another one (%s)", l.to.Name, r.old, a.detail)}
		case a.status != http.StatusConflict || a.detail != "":
			return a, fmt.Errorf("witness %s: %s", l.to.Name, a.detail)
		case a.size > s.Size:
			return a, &alarmError{fmt.Sprintf("witness %s has cosigned %d events of the log, but the log has %d: the database "+
				"is older than the log, or another server signs with the same key", l.to.Name, a.size, s.Size)}
		case attempt == 2 || a.size == r.old:
			return a, fmt.Errorf("witness %s: status 409 twice, the last time with size %d", l.to.Name, a.size)
		}

		old = a.size
		l.mu.Lock()
		l.size = old
		l.mu.Unlock()
	}
}
