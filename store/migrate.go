package store

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to this release's, one numbered file after
// another, each in a transaction of its own. PRAGMA user_version counts those
// done. A database that a newer release has migrated is refused.
func migrate(c *conn) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	if err := checkOurs(c); err != nil {
		return err
	}
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("the database has schema version %d, and this ledgerd knows %d: it was written by a newer release; use that one", version, len(files))
	}
	for version < len(files) {
		if err := migrateOne(c, files[version], version+1); err != nil {
			return err
		}
		version++
	}
	return nil
}

// checkOurs refuses the database of another program: one that has tables, but
// not the application_id that the first migration sets.
func checkOurs(c *conn) error {
	var id, tables int64
	err := c.row("SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)").Scan(&id, &tables)
	if err != nil {
		return fmt.Errorf("read application id: %w", err)
	}
	if tables > 0 && id != applicationID {
		return errors.New("it is the SQLite database of another program")
	}
	return nil
}

// applicationID marks the files of ledgerd: "ldgd" in ASCII.
const applicationID = 0x6c646764

func schemaVersion(c *conn) (int, error) {
	var version int
	if err := c.row("PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

func migrateOne(c *conn, file string, version int) error {
	script, err := migrations.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := c.execOnce("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin %s: %w", file, err)
	}
	defer c.execOnce("ROLLBACK") // does nothing after the COMMIT

	// Another process may have migrated while this one waited for the lock.
	if now, err := schemaVersion(c); err != nil || now >= version {
		return err
	}
	if err := c.execOnce(string(script)); err != nil {
		return fmt.Errorf("run %s: %w", file, err)
	}
	if err := c.execOnce(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return fmt.Errorf("finish %s: %w", file, err)
	}
	if err := c.execOnce("COMMIT"); err != nil {
		return fmt.Errorf("commit %s: %w", file, err)
	}
	return nil
}
