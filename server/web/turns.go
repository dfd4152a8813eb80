package web

import (
	"context"
	"runtime"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxWaiting is how many requests wait for their turn; further ones are told
// to come back.
const maxWaiting = 256

// errBusy says that too many wait already.
var errBusy = ledger.Errorf(ledger.CodeStorageUnavailable,
	"more pages are asked for than ledgerd can make at the moment: try again in some seconds")

// Turns bound how many pages are made at the same time, so that those who look
// leave memory, and time of the processors, to those who write.
type turns struct{ making, waiting chan struct{} }

func newTurns(making, waiting int) turns {
	return turns{make(chan struct{}, making), make(chan struct{}, waiting)}
}

// pageTurns lets as many pages be made at once as there are processors.
func pageTurns() turns { return newTurns(runtime.GOMAXPROCS(0), maxWaiting) }

// take waits for a turn, which has to be ended by leave, as long as the context
// lasts. It fails at once where too many wait already.
func (t turns) take(ctx context.Context) error {
	select {
	case t.making <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.waiting <- struct{}{}:
	default:
		return errBusy
	}
	defer func() { <-t.waiting }()
	select {
	case t.making <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turns) leave() { <-t.making }
