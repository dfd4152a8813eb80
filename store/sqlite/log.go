package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// walHeader is the size of a write-ahead log without data, in bytes.
const walHeader = 32

// checkLog returns an error if there is a log with data, but no database to which it
// belongs. SQLite would delete the log.
func checkLog(path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() <= walHeader {
		return nil
	}

	what := "empty"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "missing"
	case err != nil:
		return err
	case info.Size() >= minFile:
		return nil
	}
	return fmt.Errorf("the database file is %s, but its write-ahead log %s contains data (put the database file back "+
		"next to its log; or, to start with another one, move %[2]s and %s-shm to another folder)",
		what, path+"-wal", path)
}
