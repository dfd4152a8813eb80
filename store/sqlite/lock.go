package sqlite

import (
	"errors"
	"fmt"
	"os"
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
	if err := checkLink(path); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := checkLink(path + ".lock"); err != nil {
		return nil, err
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

// maxMigrating is how many processes may migrate a database before one that waits.
const maxMigrating = 100

// lockMigration waits until no other process migrates the database at path, and keeps others from
// it until unlock is called. Otherwise another one could copy a database that is half migrated.
func lockMigration(path string) (unlock func(), err error) {
	if err := checkLink(path + ".migrating"); err != nil {
		return nil, err
	}
	for range maxMigrating {
		l := flock.New(path+".migrating", flock.SetPermissions(0o600))
		if err := l.Lock(); err != nil {
			return nil, fmt.Errorf("lock the database for its migration: %w", err)
		}
		held, err := l.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock the database for its migration: %w", err), l.Close())
		}
		if now, err := os.Stat(l.Path()); err == nil && os.SameFile(held, now) {
			return func() {
				_ = os.Remove(l.Path()) // it may stay, and cannot be removed on Windows
				_ = l.Close()
			}, nil
		}

		if err := l.Close(); err != nil { // the process before has removed the file
			return nil, fmt.Errorf("unlock the database: %w", err)
		}
	}
	return nil, errors.New("other processes migrate the database again and again")
}
