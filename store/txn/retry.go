package txn

import (
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// maxTries is how often a write is tried. What is prepared for one try is there in the next, so
	// a write asks for little: the keyring, and what expressions say. Twenty tries leave room for a policy
	// that somebody changes a dozen times in these seconds. A write that needs more depends on what
	// changes all the time, and would otherwise keep a processor busy.
	maxTries = 20
	// MaxWrite is how long a request prepares a write and tries it again.
	MaxWrite = 5 * time.Second
)

// An Unready is the error of a write that lacks something, which takes too long to find out in
// the writer.
type Unready interface {
	error
	// Prepare finds it out, outside the writer, for the next try.
	Prepare(context.Context) error
}

// errLate is the cause of a context that ends after MaxWrite.
var errLate = errors.New("the write took too long")

// Retry runs write, which writes, and reports its error. While that is an Unready, Retry
// prepares the write and runs it again.
//
// The first try waits for the writer as long as the engine allows, which notices by the writes that
// wait that the writer hangs, or lacks the lock. All that follows ends MaxWrite after the begin of
// the first try.
func Retry(ctx context.Context, write func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, MaxWrite, errLate)
	defer cancel()

	err := write(ctx)
	for tries := 1; ; tries++ {
		u, ok := errors.AsType[Unready](err)
		isLate := errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(limited), errLate) && ctx.Err() == nil
		switch {
		case !ok && !isLate:
			return StorageError(err)
		case isLate, tries == maxTries:
			return errRestless()
		}
		if err = u.Prepare(limited); err == nil {
			err = write(limited)
		}
	}
}

// errRestless is the error of a write that was tried too often, or for too long. It is a new one
// for each caller.
func errRestless() error {
	return ledger.Errorf(ledger.CodeStorageUnavailable,
		"what the write depends on kept changing, or took too long to find out: nothing was recorded (send it again)")
}
