package sqlite

import (
	"fmt"
	"path/filepath"

	"github.com/gofrs/flock"
)

// A Lock ensures that a database has only one server. The server holds it, and so does
// a command that replaces the file. Commands that open the database next to a server do
// not take it.
type Lock struct{ file *flock.Flock }

// TakeLock takes the lock of the database at path, which need not exist. It does not
// wait: if another process has the lock, it returns an error. The system releases the
// lock when the process ends, however that happens.
//
// The lock is on a file of its own, which stays. It cannot be on the database: closing
// a file releases all locks that SQLite has on it.
func TakeLock(path string) (*Lock, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	l := &Lock{flock.New(path+".lock", flock.SetPermissions(0o600))}
	ok, err := l.file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the database: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("another server uses the database, or a command replaces it: %s is locked "+
			"(stop the other process first)", l.file.Path())
	}
	return l, nil
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }
