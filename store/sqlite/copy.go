package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// beforeMigration calls o.Migrating and, unless o.NoCopy is set, copies the
// database.
func beforeMigration(c *sqldb.Conn, path string, from, to int, o Options) error {
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
	if err := copyFile(c, name, "", from); err != nil {
		return fmt.Errorf("copy the database to %s before migrating from schema version %d to %d: %w "+
			"(free disk space for the copy, or start with --no-copy)", name, from, to, err)
	}
	return nil
}

// maxRescued is the maximum number of rescued copies next to a database.
const maxRescued = 100

// rescue writes a copy of a database whose file is gone, next to the file's old path.
// It always returns an error, which says where the data is.
func rescue(c *sqldb.Conn, path string, gone error) error {
	version, err := schemaVersion(c)
	if err != nil {
		return fmt.Errorf("%w, and its data cannot be read: %w", gone, err)
	}
	for i := 1; i <= maxRescued; i++ {
		name := fmt.Sprintf("%s.rescued-%d", path, i)
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := copyFile(c, name, name+".damaged", version); err != nil {
			return fmt.Errorf("%w, and its data cannot be saved as %s: %w", gone, name, err)
		}
		return fmt.Errorf("%w: all data is in the copy %s (check it, and put it in the place of %s; move %[3]s-wal and "+
			"%[3]s-shm away first)", gone, name, path)
	}
	return fmt.Errorf("%w, and its data is not saved: there are %d copies already", gone, maxRescued)
}

// copyFile writes a consistent copy of the database, verifies it, and only then
// renames it to name. It replaces a copy from an earlier attempt, because the
// schema has not changed since. If another process migrates the database during
// the copy, copyFile deletes its own copy. A damaged copy is moved to the file damaged, or
// deleted if that is empty.
func copyFile(c *sqldb.Conn, name, damaged string, version int) (err error) {
	if err := removeStale(name); err != nil {
		return err
	}

	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	temp := file.Name()
	defer func() {
		if err == nil {
			return
		}
		if removing := os.Remove(temp); !errors.Is(removing, fs.ErrNotExist) {
			err = errors.Join(err, removing)
		}
	}()
	if err := file.Close(); err != nil {
		return err
	}

	// VACUUM INTO accepts an existing file if it is empty.
	if _, err := c.Exec("VACUUM INTO ?", temp); err != nil {
		return err
	}
	copied, err := verifyCopy(context.Background(), temp)
	if err != nil && damaged != "" {
		return errors.Join(fmt.Errorf("%w (it is saved as %s)", err, damaged), os.Rename(temp, damaged))
	}
	if err != nil {
		return err
	}
	if copied != version { // another process is migrating, and has copied the database
		return os.Remove(temp)
	}

	if err := syncFile(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, name); err != nil {
		return err
	}
	return atomicfile.SyncFolder(name)
}

// staleAfter is the age after which a temporary copy is stale: the process that
// wrote it was killed.
const staleAfter = time.Hour

// removeStale deletes the temporary files of interrupted copies.
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process may have deleted it
			return err
		}
	}
	return nil
}

// verifyCopy checks the integrity of a whole copy and returns its schema version.
func verifyCopy(ctx context.Context, path string) (version int, err error) {
	db, err := openFile(path, []string{"query_only(1)"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := Connect(ctx, db)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.SetContext(ctx)

	var verdict string
	if err := c.Row("PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return 0, err
	}
	if verdict != "ok" {
		return 0, fmt.Errorf("damaged copy: %s", verdict)
	}
	return schemaVersion(c)
}

// syncFile flushes a file to disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
