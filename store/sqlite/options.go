package sqlite

import "github.com/ledgerd/ledgerd/store/sqldb"

// Options configures a DB.
type Options struct {
	Hooks sqldb.Hooks
	// Steps are what migrations do beside their scripts, by schema version: each
	// runs after the script of that version, in the same transaction.
	Steps map[int]func(*sqldb.Conn) error
	// NoCopy leaves out the copy of the file that is taken before a migration.
	NoCopy bool
	// Migrating, where not nil, is called before a migration begins, with the
	// versions of the schema and where the copy of the file goes (empty for none).
	Migrating func(from, to int, file string)
	// CheckpointFailed, where not nil, is called when work in the background begins to fail.
	CheckpointFailed func(error)
}
