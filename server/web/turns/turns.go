// Package turns limits how many pages are made at the same time.
package turns

import (
	"context"
	"runtime"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxWaiting is the maximum number of requests that wait for their turn.
const maxWaiting = 256

// ErrBusy says that too many wait already.
var ErrBusy = ledger.Errorf(ledger.CodeStorageUnavailable,
	"more pages are asked for than ledgerd can make at the moment: try again in some seconds")

// Turns leave memory and processor time to those who record, however many people
// look at pages.
type Turns struct{ making, waiting chan struct{} }

// New returns turns for as many pages at a time as there are processors.
func New() Turns {
	return Turns{make(chan struct{}, runtime.GOMAXPROCS(0)), make(chan struct{}, maxWaiting)}
}

// Take waits for a turn, which Leave ends, or for the end of the context. If too
// many wait already, it returns ErrBusy at once.
func (t Turns) Take(ctx context.Context) error {
	select {
	case t.making <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.waiting <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-t.waiting }()
	select {
	case t.making <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Leave ends a turn.
func (t Turns) Leave() { <-t.making }
