package txn

import (
	"context"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// StorageError returns a CodeStorageUnavailable error for a storage fault, and any
// other error unchanged. The engine reports storage faults to the log.
func StorageError(err error) error {
	switch sqldb.ClassOf(err) {
	case sqldb.Full:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the disk is full: nothing was written")
	case sqldb.Failing:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"the disk or the database file cannot be read or written (see the server log)")

	case sqldb.Unreachable:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database is not reached (see the server log)")
	case sqldb.Slow:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"the read took too long and was stopped (try again later, or with a narrower filter)")
	case sqldb.Locked:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "the database is locked: another process holds the write lock")
	case sqldb.Stalled:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%v", err)

	case sqldb.Uncertain:
		return ledger.Errorf(ledger.CodeStorageUnavailable,
			"whether this was recorded is unknown: the disk or the database failed during the write (send it again)")
	case sqldb.Gone:
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%v: nothing was written (see the server log)", err)
	}
	return err
}

// Unread returns the error of a read after a write that is on disk, so that it does not
// look as if nothing was changed. done says what was written. If err is nil, so is the
// result.
func Unread(done string, err error) error {
	if IsUnavailable(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ledger.Errorf(ledger.CodeStorageUnavailable, "%s, but its record cannot be read now: %v", done, err)
	}
	return err
}

// IsCode reports whether an error has a code.
func IsCode(err error, code ledger.Code) bool {
	e, ok := errors.AsType[*ledger.Error](err)
	return ok && e.Code == code
}

// IsUnavailable reports whether nothing can be recorded at the moment, because of the storage or of
// the clock.
func IsUnavailable(err error) bool {
	return IsCode(err, ledger.CodeStorageUnavailable) || IsCode(err, ledger.CodeClockJumped)
}
