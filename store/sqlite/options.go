package sqlite

import "github.com/ledgerd/ledgerd/store/sqldb"

// Options configures a DB.
type Options struct {
	Hooks sqldb.Hooks
	// Steps are the parts of migrations that are written in Go, by schema version.
	// Each runs after the script of its version, in the same transaction.
	Steps map[int]func(*sqldb.Conn) error
	// NoCopy skips the copy of the file that is written before a migration.
	NoCopy bool
	// Migrating, if not nil, is called before a migration with the old and the new
	// schema version. The string file is the path of the copy, empty for none.
	Migrating func(from, to int, file string)
	// ExternalCheckpoints leaves the checkpoints of the log to another process.
	ExternalCheckpoints bool
	// Serve takes the lock of the server. Open fails if another process has it.
	Serve bool
	// Began and Ended, if not nil, are called at the beginning and the end of an incident,
	// one call at a time.
	Began, Ended func(sqldb.Incident)
}
