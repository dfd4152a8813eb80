package sqlite

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// dialect is the dialect of SQLite.
var dialect = sqldb.Dialect{
	// Without ANALYZE, SQLite has no table statistics and guesses a join order.
	// CROSS JOIN makes it join in the order written.
	Rewrite:   []string{"/*+ordered*/ JOIN", "CROSS JOIN", "/*+rows*/", "VALUES"},
	IndexHint: [2]string{"INDEXED BY ", ""},
	NextID:    "SELECT coalesce(max(id), 0) + 1 FROM ",
	Classify:  classify,
}

// classify implements sqldb.Dialect.Classify.
func classify(err error) sqldb.Class {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return sqldb.Other
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return sqldb.Duplicate
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return sqldb.Full
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
		// If the disk cannot be read, SQLite says that the file is damaged (CORRUPTFS).
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return sqldb.Failing
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL:
		return sqldb.Locked
	}
	return sqldb.Other
}

// isSQLite reports whether err is an error of SQLite, as opposed to one that a
// write returned for reasons of its own.
func isSQLite(err error) bool {
	_, ok := errors.AsType[*sqlite.Error](err)
	return ok
}
