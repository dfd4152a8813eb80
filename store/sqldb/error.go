package sqldb

import "errors"

// ErrClosed is returned by an Engine that is closed.
var ErrClosed = errors.New("the database is closed")

// A Class is the kind of a database error. There is one for each error that
// callers handle specially.
type Class int

// The classes of errors.
const (
	Other       Class = iota // any other error
	Duplicate                // a row with that key exists
	Full                     // the disk is full
	Failing                  // the disk or the file cannot be read or written
	Locked                   // another process holds the write lock
	Slow                     // the read took too long and was stopped
	Stalled                  // the disk or the writer does not respond in time
	Gone                     // the file is no longer the one at its path
	Uncertain                // the disk or the connection failed, and whether the write is on disk is unknown
	Unreachable              // the server of the database is not reached, or ends the connection
)

// An Error is an error of the driver with its class.
type Error struct {
	Class Class
	Err   error // from the driver
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error of the driver.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err, or Other if err does not wrap an *Error.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Other
}
