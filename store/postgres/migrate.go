package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLimit is how long a migration may take.
const migrationLimit = 24 * time.Hour

// migrate updates the schema to the version of this release, in one transaction. Processes that
// open the database at the same time wait for each other. It refuses a database with a newer
// schema, or with tables of another program.
func migrate(c *sqldb.Conn, o Options) error {
	files, latest, err := scripts()
	if err != nil {
		return err
	}
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	switch {
	case version > latest:
		return fmt.Errorf("schema version %d is too new: this release supports versions up to %d "+
			"(use the newer release that wrote it)", version, latest)
	case version == latest:
		return nil
	}
	if version > 0 && o.Migrating != nil {
		o.Migrating(version, latest, "")
	}

	ctx, cancel := context.WithTimeout(context.Background(), migrationLimit)
	defer cancel()
	c.SetContext(ctx)
	defer c.SetContext(context.Background())
	if err := c.Run("BEGIN"); err != nil {
		return fmt.Errorf("begin the migration: %w", err)
	}
	defer c.Run("ROLLBACK") // a no-op after the COMMIT
	if err := runAll(c, files); err != nil {
		return err
	}
	if err := c.Run("COMMIT"); err != nil {
		return fmt.Errorf("commit the migration: %w", err)
	}
	return nil
}

// scripts returns the files of the migrations in order, and the version of this release.
func scripts() (files []string, latest int, err error) {
	if files, err = fs.Glob(migrations, "migrations/*.sql"); err != nil {
		return nil, 0, fmt.Errorf("list migrations: %w", err)
	}
	return files, versionOf(files[len(files)-1]), nil
}

// versionOf returns the schema version to which a file migrates. It is the number of SQLite's
// migration with the same result.
func versionOf(file string) int {
	version, _ := strconv.Atoi(path.Base(file)[:4]) // 0 would run it never; a test checks the names
	return version
}

// migrationLock is the key of the lock that a process holds while it migrates. Nothing else uses
// advisory locks.
const migrationLock = 0x6c646764 // "ldgd"

// runAll runs the migrations after the present version.
func runAll(c *sqldb.Conn, files []string) error {
	if _, err := c.Exec("SELECT pg_advisory_xact_lock(?)", int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for the migration of another process: %w", err)
	}
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}

	for _, file := range files {
		if versionOf(file) <= version {
			continue
		}
		script, err := migrations.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if err := c.Run(string(script)); err != nil {
			return fmt.Errorf("run %s: %w", file, err)
		}
		if _, err := c.Exec("UPDATE ledger SET schema_version = ?", versionOf(file)); err != nil {
			return fmt.Errorf("finish %s: %w", file, err)
		}
	}
	return nil
}

// schemaVersion returns the version of the schema, or 0 if the database has no tables. It returns
// an error if it has tables of another program.
func schemaVersion(c *sqldb.Conn) (version int, err error) {
	var tables, isLedger int
	err = c.Row(`
SELECT count(*), count(*) FILTER (WHERE c.relname = 'ledger' AND EXISTS (
    SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'schema_version'))
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')`).
		Scan(&tables, &isLedger)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the tables: %w", err)
	case tables == 0:
		return 0, nil
	case isLedger == 0:
		return 0, errors.New("not a database of ledgerd: another program has created tables in it (create an empty database)")
	}
	if err := c.Row("SELECT schema_version FROM ledger").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, nil
}

// ErrEmpty is the error of OpenReadOnly if a server has never used the database.
var ErrEmpty = errors.New("the database is empty")

// checkSchema returns an error unless the database has the schema of this release.
func checkSchema(c *sqldb.Conn) error {
	_, latest, err := scripts()
	if err != nil {
		return err
	}
	switch version, err := schemaVersion(c); {
	case err != nil:
		return err
	case version == 0:
		return ErrEmpty
	case version > latest:
		return fmt.Errorf("schema version %d is too new: this release reads version %d (use the newer release that wrote it)",
			version, latest)
	case version < latest:
		return fmt.Errorf("schema version %d is of an earlier release: this release reads version %d (use the release that "+
			"wrote it, or start a server of this one, which migrates it)", version, latest)
	}
	return nil
}
