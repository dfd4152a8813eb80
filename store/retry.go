package store

import (
	"context"
	"errors"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

const (
	// maxTries is how often a write is tried. What is prepared for one try is there in the next, so
	// a write asks for little: the keyring, and what expressions say. Twenty tries leave room for a policy
	// that somebody changes a dozen times in these seconds. A write that needs more depends on what
	// changes all the time, and would otherwise keep a processor busy.
	maxTries = 20
	// maxWrite is how long a request prepares a write and tries it again.
	maxWrite = 5 * time.Second
)

// An unready is the error of a write that lacks something, which takes too long to find out in
// the writer.
type unready interface {
	error
	// prepare finds it out, outside the writer, for the next try.
	prepare(ctx context.Context, s *Store) error
}

// errLate is the cause of a context that ends after Store.maxWrite.
var errLate = errors.New("the write took too long")

// retry runs write, which writes, and reports its error. While that is an unready, retry
// prepares the write and runs it again.
//
// The first try waits for the writer as long as the engine allows, which notices by the writes that
// wait that the writer hangs, or lacks the lock. All that follows ends s.maxWrite after the begin of
// the first try.
func (s *Store) retry(ctx context.Context, write func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.maxWrite, errLate)
	defer cancel()

	err := write(ctx)
	for tries := 1; ; tries++ {
		u, ok := errors.AsType[unready](err)
		isLate := errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(limited), errLate) && ctx.Err() == nil
		switch {
		case !ok && !isLate:
			return txn.StorageError(err)
		case isLate, tries == maxTries:
			return errRestless()
		}
		if err = u.prepare(limited, s); err == nil {
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
