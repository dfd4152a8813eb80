package sqldb

import "errors"

// ErrClosed means that the database is closed.
var ErrClosed = errors.New("the store is closed")

// A Class tells faults of a database apart as far as callers treat them
// differently.
type Class int

// The classes of faults. Of Other, nothing is known.
const (
	Other     Class = iota
	Duplicate       // a row with that key exists
	Full            // there is no room on the disk
	Failing         // the disk or the file cannot be used
	Locked          // another process holds the write lock
)

// An Error is a fault that the engine has classified.
type Error struct {
	Class Class
	Err   error // the driver's
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err, or Other if it is no fault of a database.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Other
}
