package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// prepare makes a migration safe to begin: it takes a copy of the file, unless
// the options say otherwise.
func prepare(c *sqldb.Conn, path string, from, to int, o Options) error {
	name := ""
	if !o.NoCopy {
		name = fmt.Sprintf("%s.v%d", path, from)
	}
	if o.Migrating != nil {
		o.Migrating(from, to, name)
	}
	if name == "" {
		return nil
	}
	if err := copyFile(c, name, from); err != nil {
		return fmt.Errorf("copy the database to %s before the schema changes from version %d to %d: %w "+
			"(make room for the copy, or start with --no-copy)", name, from, to, err)
	}
	return nil
}

// copyFile writes a consistent copy of the database next to it, verifies it, and
// gives it its name only then. A copy of that name from an earlier attempt is
// replaced: the schema has not changed since. If it changes meanwhile, no copy
// is kept.
func copyFile(c *sqldb.Conn, name string, version int) (err error) {
	if err := removeStale(name); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp") // for its owner alone
	if err != nil {
		return err
	}
	temp := file.Name()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	if err := file.Close(); err != nil {
		return err
	}
	// VACUUM INTO takes an empty file for a new one.
	if _, err := c.Exec("VACUUM INTO ?", temp); err != nil {
		return err
	}
	copied, err := verifyCopy(temp)
	if err != nil {
		return err
	}
	if copied != version { // another process migrates: a copy that is wanted is there
		return os.Remove(temp)
	}
	if err := syncFile(temp, os.O_RDWR); err != nil {
		return err
	}
	if err := os.Rename(temp, name); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // a folder cannot be flushed there
	}
	return syncFile(filepath.Dir(name), os.O_RDONLY)
}

// staleAfter is the age at which a copy without its name belongs to nobody: the
// process that wrote it was killed.
const staleAfter = time.Hour

// removeStale deletes temporary files of interrupted copies.
func removeStale(name string) error {
	folder, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	for _, entry := range folder {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(name)+".")
		if !ok || !strings.HasSuffix(rest, ".tmp") {
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > staleAfter {
			err = os.Remove(filepath.Join(filepath.Dir(name), entry.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process may clean up too
			return err
		}
	}
	return nil
}

// verifyCopy reads a copy from beginning to end and returns its schema version.
func verifyCopy(path string) (version int, err error) {
	db, err := openFile(path, []string{"query_only(1)"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := sqldb.Connect(context.Background(), db, &dialect)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	var verdict string
	if err := c.Row("PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return 0, err
	}
	if verdict != "ok" {
		return 0, fmt.Errorf("the copy is damaged: %s", verdict)
	}
	return schemaVersion(c)
}

// syncFile flushes a file, or the names in a folder, to the disk. The flag says
// how to open it.
func syncFile(path string, flag int) error {
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
