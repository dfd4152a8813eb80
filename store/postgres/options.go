package postgres

import "github.com/ledgerd/ledgerd/store/sqldb"

// Options configures a DB.
type Options struct {
	Hooks sqldb.Hooks
	// Migrating, if not nil, is called before a migration with the old and the new schema version.
	Migrating func(from, to int, file string)
	// Began and Ended, if not nil, are called at the beginning and the end of an incident, one
	// call at a time.
	Began, Ended func(sqldb.Incident)
}
