package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// migrationLimit is how long a migration may take.
const migrationLimit = 24 * time.Hour

// migrate updates the schema to the version of this release, in one transaction. Processes that
// open the database at the same time wait for each other. It refuses a database with a newer
// schema, with tables of another program, or with anything in its schema that they have not made.
func migrate(c *sqldb.Conn, o Options) error {
	_, latest, err := scripts()
	if err != nil {
		return err
	}
	version, err := checkObjects(c)
	if err != nil {
		return err
	}
	if version > latest {
		return sqldb.TooNew(version, latest)
	}
	if version == latest {
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
	if err := migrateAlone(c, latest); err != nil {
		return err
	}
	if err := c.Run("COMMIT"); err != nil {
		return fmt.Errorf("commit the migration: %w", err)
	}
	return nil
}

// migrateAlone creates the tables, or runs the migrations after the present version, while no other process does.
func migrateAlone(c *sqldb.Conn, latest int) error {
	if _, err := c.Exec("SELECT pg_advisory_xact_lock(?)", int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for the migration of another process: %w", err)
	}
	switch version, _, err := inspect(c); {
	case err != nil:
		return err
	case version == 0:
		return create(c, latest)
	case version > latest: // a newer release was faster
		return sqldb.TooNew(version, latest)
	default:
		return runScripts(c, version, latest)
	}
}

// ErrEmpty is the error of OpenReadOnly if a server has never used the database.
var ErrEmpty = errors.New("the database is empty")

// checkSchema returns an error unless the database has the schema of this release, and nothing else.
func checkSchema(c *sqldb.Conn) error {
	_, latest, err := scripts()
	if err != nil {
		return err
	}
	switch version, err := checkObjects(c); {
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
