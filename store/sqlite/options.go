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
	// CheckpointFailed, if not nil, is called with the first error of a series of
	// failed WAL checkpoints.
	CheckpointFailed func(error)
}
