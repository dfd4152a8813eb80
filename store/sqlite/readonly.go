package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// forever is longer than any read.
const forever = 365 * 24 * time.Hour

// OpenReadOnly opens a database file that has the schema of this release, for reading. It
// changes neither the file nor its log, whether or not a server is running: only the index of
// the log (-shm) is written, as every reader does that has a log to read. All lanes share
// the connections, and reads take as long as they need.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	db := newDB(path, Options{})
	pool := engine.NewPool(db.Closing)
	for lane := range db.Readers.Lanes {
		db.Readers.Lanes[lane], db.Readers.MaxRead[lane] = pool, forever
	}
	if err := db.openReadOnly(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

func (db *DB) openReadOnly(ctx context.Context, path string) (err error) {
	var options url.Values
	if options, db.still, err = readOnly(path); err != nil {
		return err
	}
	if db.readDB, err = openFileAs(path, readerPragmas, options); err != nil {
		return err
	}

	for i := range readers()[sqldb.Writes] {
		c, err := Connect(ctx, db.readDB)
		if err != nil {
			return err
		}
		db.Readers.Lanes[sqldb.Writes].Add(c)
		if i > 0 {
			continue
		}
		if _, err := checkSchema(c); err != nil {
			return err
		}
	}
	return nil
}

// readOnly returns the options with which a file is only read. If it has no log, nobody has it
// open: then still is not nil, and SQLite creates no log. It returns an error if there is a rollback
// journal, or a log of another file: what the next process that writes finds in the file is not what is in it now.
func readOnly(path string) (options url.Values, still fs.FileInfo, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // next to which the log is
	}
	if err := checkLog(path); err != nil {
		return nil, nil, err
	}
	if err := checkJournal(path); err != nil {
		return nil, nil, err
	}
	options = url.Values{"mode": {"ro"}}
	if hasLog(path) {
		return options, nil, nil
	}
	options.Set("immutable", "1")
	still, err = os.Stat(path)
	return options, still, err
}

// checkJournal returns an error if there is a rollback journal with data next to a file. ledgerd has one
// only while it creates a database.
func checkJournal(path string) error {
	journal, err := os.Stat(path + "-journal")
	if err != nil || journal.Size() == 0 {
		return nil
	}
	return fmt.Errorf("the rollback journal %s contains data, with which the next process that writes would change the "+
		"database file (move the journal to another folder, or use a backup of your own)", path+"-journal")
}

// hasLog reports whether a database has a log to read, or that another process may write to.
func hasLog(path string) bool {
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return false
	}
	_, err = os.Stat(path + "-shm")
	return log.Size() > 0 || err == nil
}

// SchemaOf returns the schema version of a file that is only read, and whether it is that of this
// release. It returns an error if the file is no database of ledgerd, or of a newer release, and a
// *sqldb.SchemaError if there is anything in the schema that ledgerd does not create.
func SchemaOf(ctx context.Context, path string) (version int, current bool, err error) {
	options, still, err := readOnly(path)
	if err != nil {
		return 0, false, err
	}
	db, err := openFileAs(path, readerPragmas, options)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, db.Close(), changed(path, still)) }()
	c, err := Connect(ctx, db)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	version, err = checkSchema(c)
	if _, ok := errors.AsType[*oldSchemaError](err); ok {
		return version, false, nil
	}
	return version, err == nil, err
}

// An oldSchemaError is the error of a file with the schema of an earlier release.
type oldSchemaError struct{ version, latest int }

func (e *oldSchemaError) Error() string {
	return fmt.Sprintf("schema version %d is of an earlier release: this release reads version %d (use the release that "+
		"wrote it, or start this one's server on a copy, which migrates it)", e.version, e.latest)
}

// checkSchema returns the version of a file's schema, and an error unless it is the schema of this
// release.
func checkSchema(c *sqldb.Conn) (version int, err error) {
	if err := checkApplicationID(c); err != nil {
		return 0, err
	}
	files, err := scripts()
	if err != nil {
		return 0, err
	}

	switch version, err = checkObjects(c, len(files)); {
	case err != nil:
		return 0, err
	case version > len(files):
		return 0, fmt.Errorf("schema version %d is too new: this release reads version %d (use the newer release that "+
			"wrote it)", version, len(files))
	case version == 0:
		return 0, errors.New("the file is empty")
	case version < len(files):
		return version, &oldSchemaError{version, len(files)}
	}
	return version, nil
}

// Changed returns an error if the file was changed since OpenReadOnly, which took it for a file
// that no process has open: what was read may be from before and after a change.
func (db *DB) Changed() error { return changed(db.path, db.still) }

// changed returns an error if a file is no longer as it was. If still is nil, each read
// transaction had a snapshot, so that changes do not matter.
func changed(path string, still fs.FileInfo) error {
	if still == nil {
		return nil
	}
	now, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(now, still) || now.Size() != still.Size() || !now.ModTime().Equal(still.ModTime()) {
		return fmt.Errorf("%s was changed at %s, while it was read", path, now.ModTime().Format(time.RFC3339))
	}
	return nil
}

// maxDamage limits the lines that CheckFile reports of each kind.
const maxDamage = 100

// CheckFile calls report with each damage of the file: pages, indexes and rows that contradict
// each other, and rows that refer to missing ones.
func (db *DB) CheckFile(ctx context.Context, report func(damage string)) error {
	return db.Read(ctx, sqldb.Reader{Lane: sqldb.Writes}, func(c *sqldb.Conn) error {
		err := c.EachLong(func(row sqldb.Scanner) error {
			var line string
			if err := row.Scan(&line); err != nil {
				return err
			}
			if line != "ok" {
				report(line)
			}
			return nil
		}, fmt.Sprintf("PRAGMA integrity_check(%d)", maxDamage))
		if err != nil {
			return fmt.Errorf("check the integrity: %w", err)
		}

		lines := 0
		return c.EachLong(func(row sqldb.Scanner) error {
			var table, parent string
			var id, key any
			if err := row.Scan(&table, &id, &parent, &key); err != nil {
				return err
			}
			if lines++; lines <= maxDamage {
				report(fmt.Sprintf("row %v of %s refers to a missing row of %s", id, table, parent))
			}
			return nil
		}, "PRAGMA foreign_key_check")
	})
}
