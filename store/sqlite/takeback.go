package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// takeBack makes sure that a transaction stays undone whose COMMIT has failed with err. If
// that was after its frames were written to the log, for example because the disk could
// not be flushed, they are complete there until others overwrite them: if the process were
// killed now, the next one would recover them. So takeBack overwrites them with a
// transaction that changes nothing. If it cannot, it returns an error of class Uncertain.
func takeBack(c *sqldb.Conn, err error) error {
	if !wroteFrames(err) {
		return err
	}
	if overwriteErr := writeNothing(c); overwriteErr != nil && !wroteFrames(overwriteErr) {
		return &sqldb.Error{Class: sqldb.Uncertain, Err: fmt.Errorf("%w; overwrite its log: %w", err, overwriteErr)}
	}
	return err
}

// wroteFrames reports whether a COMMIT that failed with err may have written all its
// frames to the log. The frame that completes a transaction is written last, so an error of
// a write means that it is incomplete.
func wroteFrames(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_SHMOPEN,
		sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_SHMLOCK:
		return true
	}
	return false
}

// writeNothing commits a transaction that changes nothing, but goes through the log.
func writeNothing(c *sqldb.Conn) error {
	if _, err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := rewriteVersion(c)
	if err == nil {
		_, err = c.Exec("COMMIT")
	}
	if err != nil {
		_ = c.Run("ROLLBACK") // fails if SQLite has already rolled back
	}
	return err
}

// rewriteVersion writes the schema version that the database has.
func rewriteVersion(c *sqldb.Conn) error {
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	return c.Run(fmt.Sprintf("PRAGMA user_version = %d", version))
}
