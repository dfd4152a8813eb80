// Package turns decides which page is rendered next: it limits how many are rendered at the same time, and
// renders a page once for all who ask for it at about the same time.
package turns

import (
	"context"
	"runtime"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxWaiting is the maximum number of requests that wait to be rendered.
const maxWaiting = 256

// ErrBusy is returned if too many requests wait for a Limiter already.
var ErrBusy = ledger.Errorf(ledger.CodeStorageUnavailable,
	"server busy: too many page requests (try again in a few seconds)")

// A Limiter limits how many pages are rendered at the same time, so that many viewers
// leave memory and CPU time for recording.
type Limiter struct{ rendering, waiting chan struct{} }

// NewLimiter returns a Limiter for as many pages at a time as there are CPUs (GOMAXPROCS).
func NewLimiter() Limiter {
	return Limiter{make(chan struct{}, runtime.GOMAXPROCS(0)), make(chan struct{}, maxWaiting)}
}

// Acquire waits until a page may be rendered, or until ctx ends. If it returns nil, the
// caller must call Release. If too many requests wait already, Acquire returns ErrBusy
// at once.
func (l Limiter) Acquire(ctx context.Context) error {
	select {
	case l.rendering <- struct{}{}:
		return nil
	default:
	}

	select {
	case l.waiting <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-l.waiting }()

	select {
	case l.rendering <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release lets the next page be rendered.
func (l Limiter) Release() { <-l.rendering }
