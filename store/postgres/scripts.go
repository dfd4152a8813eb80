package postgres

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// newSchema creates the tables of a new database. Migrations are for older ones.
//
//go:embed schema.sql
var newSchema string

//go:embed migrations/*.sql
var migrations embed.FS

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

// create creates the tables of this release, whose version is the latest.
func create(c *sqldb.Conn, latest int) error {
	if err := c.Run(newSchema); err != nil {
		return fmt.Errorf("run schema.sql: %w", err)
	}
	if _, err := c.Exec("UPDATE ledger SET schema_version = ?", latest); err != nil {
		return fmt.Errorf("finish schema.sql: %w", err)
	}
	return nil
}

// runScripts runs the migrations after a version, up to another.
func runScripts(c *sqldb.Conn, after, last int) error {
	files, _, err := scripts()
	if err != nil {
		return err
	}
	for _, file := range files {
		if versionOf(file) <= after || versionOf(file) > last {
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

// migrationLock is the key of the lock that a process holds while it migrates. Nothing else uses
// advisory locks.
const migrationLock = 0x6c646764 // "ldgd"
