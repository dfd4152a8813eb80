package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// migrate updates the schema to the version of this release. In a new database it creates the
// schema. In others it runs the numbered scripts in order, each in its own transaction. PRAGMA
// user_version is the number of the last one. It refuses a database with a newer schema, or with
// anything in its schema that they have not made, before it writes to it.
func migrate(c *sqldb.Conn, path string, o Options) error {
	files, err := scripts()
	if err != nil {
		return err
	}
	if err := checkApplicationID(c); err != nil {
		return err
	}
	version, err := checkObjects(c, len(files))
	if err != nil {
		return err
	}
	if version > len(files) {
		return sqldb.TooNew(version, len(files))
	}

	if err := useWAL(c); err != nil {
		return fmt.Errorf("switch to the write-ahead log: %w", err)
	}
	// This read also opens the log, which the guard expects.
	if version, err = schemaVersion(c); err != nil || version == len(files) {
		return err
	}
	return migrateAlone(c, path, files, o)
}

// migrateAlone migrates a database that is not of the latest version, while no other process does.
func migrateAlone(c *sqldb.Conn, path string, files []string, o Options) error {
	unlock, err := lockMigration(path)
	if err != nil {
		return err
	}
	defer unlock()

	switch version, err := schemaVersion(c); {
	case err != nil || version == len(files):
		return err
	case version == 0:
		return create(c, len(files))
	case version > len(files): // a newer release was faster
		return sqldb.TooNew(version, len(files))
	default:
		return migrateFrom(c, path, version, files, o)
	}
}

// migrateFrom runs the scripts after a version.
func migrateFrom(c *sqldb.Conn, path string, version int, files []string, o Options) error {
	if err := beforeMigration(c, path, version, len(files), o); err != nil {
		return err
	}
	return migrateAll(c, files, version, o.Steps)
}

// checkApplicationID returns an error if the database belongs to another program:
// it has tables or an application_id, but not the one that the first migration sets.
func checkApplicationID(c *sqldb.Conn) error {
	var id, tables int64
	err := c.Row(`
SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&id, &tables)
	if err != nil {
		return fmt.Errorf("read application ID: %w", err)
	}
	if (tables > 0 || id != 0) && id != applicationID {
		return errors.New("not a ledgerd database: another program created this SQLite file")
	}
	return nil
}

// maxWALWait is the maximum time for which useWAL waits for other processes.
const maxWALWait = 10 * time.Second

// useWAL switches the file to WAL mode. It retries because SQLite's busy timeout
// does not apply if another process switches at the same time.
func useWAL(c *sqldb.Conn) error {
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := c.Run("PRAGMA journal_mode = WAL")
		if sqldb.ClassOf(err) != sqldb.Locked || time.Since(begin) > maxWALWait {
			return err
		}
	}
}
