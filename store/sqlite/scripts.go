package sqlite

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// newSchema creates the tables of a new database. Migrations are for older ones.
//
//go:embed schema.sql
var newSchema string

// scripts returns the files of the migrations in order.
func scripts() ([]string, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	return files, nil
}

// migrateAll runs the migrations after the given version.
func migrateAll(c *sqldb.Conn, files []string, version int, steps map[int]func(*sqldb.Conn) error) (err error) {
	// While a table is rebuilt, references to it dangle. Data to sort may be as large
	// as the database, so it goes to a file. One migration writes to the schema table, which
	// the defensive mode forbids.
	err = errors.Join(c.Run("PRAGMA foreign_keys = OFF; PRAGMA temp_store = FILE"), setDefensive(c, false))
	if err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	defer func() {
		err = errors.Join(err, c.Run("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY"), setDefensive(c, true))
	}()

	for ; version < len(files); version++ {
		err := migrateTo(c, version+1, func() error { return runMigration(c, files[version], steps[version+1]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// create makes the schema of this release, which has a version, in a new database.
func create(c *sqldb.Conn, version int) error {
	return migrateTo(c, version, func() error {
		if err := c.Run(newSchema); err != nil {
			return fmt.Errorf("run schema.sql: %w", err)
		}
		return nil
	})
}

// migrateTo runs change, which migrates the schema to a version, in a transaction.
func migrateTo(c *sqldb.Conn, to int, change func() error) error {
	if err := c.Run("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin the migration to version %d: %w", to, err)
	}
	defer c.Run("ROLLBACK") // a no-op after the COMMIT

	// Another process may have migrated the database while this one waited for the
	// lock.
	if now, err := schemaVersion(c); err != nil || now >= to {
		return err
	}
	if err := change(); err != nil {
		return err
	}

	if err := checkReferences(c); err != nil {
		return fmt.Errorf("check the migration to version %d: %w", to, err)
	}
	if err := c.Run(fmt.Sprintf("PRAGMA user_version = %d", to)); err != nil {
		return fmt.Errorf("finish the migration to version %d: %w", to, err)
	}
	if err := c.Run("COMMIT"); err != nil {
		return fmt.Errorf("commit the migration to version %d: %w", to, err)
	}
	return nil
}

// runMigration runs a script and its Go step.
func runMigration(c *sqldb.Conn, file string, step func(*sqldb.Conn) error) error {
	script, err := migrations.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := c.Run(string(script)); err != nil {
		return fmt.Errorf("run %s: %w", file, err)
	}
	if step == nil {
		return nil
	}
	if err := step(c); err != nil {
		return fmt.Errorf("run the Go step of %s: %w", file, err)
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
