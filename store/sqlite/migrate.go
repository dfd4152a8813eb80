package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate updates the schema to the version of this release. It runs the numbered
// scripts in order, each in its own transaction. PRAGMA user_version is the number
// of the last one. It refuses a database with a newer schema.
func migrate(c *sqldb.Conn, path string, o Options) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	if err := checkApplicationID(c); err != nil {
		return err
	}
	if err := useWAL(c); err != nil {
		return fmt.Errorf("switch to the write-ahead log: %w", err)
	}

	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	switch {
	case version > len(files):
		return fmt.Errorf("schema version %d is too new: this release supports versions up to %d "+
			"(use the newer release that wrote it)", version, len(files))
	case version == len(files):
		return nil
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

	version, err := schemaVersion(c)
	if err != nil || version == len(files) {
		return err
	}
	if version > 0 {
		if err := beforeMigration(c, path, version, len(files), o); err != nil {
			return err
		}
	}
	return migrateAll(c, files, version, o.Steps)
}

// migrateAll runs the migrations after the given version.
func migrateAll(c *sqldb.Conn, files []string, version int, steps map[int]func(*sqldb.Conn) error) (err error) {
	// While a table is rebuilt, references to it dangle. Data to sort may be as large
	// as the database, so it goes to a file.
	if err := c.Run("PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE"); err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	defer func() { err = errors.Join(err, c.Run("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")) }()

	for ; version < len(files); version++ {
		if err := migrateOne(c, files[version], version+1, steps[version+1]); err != nil {
			return err
		}
	}
	return nil
}

func migrateOne(c *sqldb.Conn, file string, version int, step func(*sqldb.Conn) error) error {
	script, err := migrations.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := c.Run("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin %s: %w", file, err)
	}
	defer c.Run("ROLLBACK") // a no-op after the COMMIT

	// Another process may have migrated the database while this one waited for the
	// lock.
	if now, err := schemaVersion(c); err != nil || now >= version {
		return err
	}
	if err := c.Run(string(script)); err != nil {
		return fmt.Errorf("run %s: %w", file, err)
	}
	if step != nil {
		if err := step(c); err != nil {
			return fmt.Errorf("run the Go step of %s: %w", file, err)
		}
	}

	if err := checkReferences(c); err != nil {
		return fmt.Errorf("check %s: %w", file, err)
	}
	if err := c.Run(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return fmt.Errorf("finish %s: %w", file, err)
	}
	if err := c.Run("COMMIT"); err != nil {
		return fmt.Errorf("commit %s: %w", file, err)
	}
	return nil
}

// checkReferences returns an error if a row refers to a missing row.
func checkReferences(c *sqldb.Conn) error {
	return c.Each(func(row sqldb.Scanner) error {
		var table, parent string
		var id, key any
		if err := row.Scan(&table, &id, &parent, &key); err != nil {
			return err
		}
		return fmt.Errorf("row %v of %s refers to a missing row of %s", id, table, parent)
	}, "PRAGMA foreign_key_check")
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
