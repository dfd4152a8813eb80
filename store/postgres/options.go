package postgres

import (
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Options configures a DB.
type Options struct {
	Hooks sqldb.Hooks
	// Timeout limits each transaction that writes, and how long Watch waits for the server. 0 means
	// 30 seconds.
	Timeout time.Duration
	// Migrating, if not nil, is called before a migration with the old and the new schema version.
	Migrating func(from, to int, file string)
	// Began and Ended, if not nil, are called at the beginning and the end of an incident, one
	// call at a time.
	Began, Ended func(sqldb.Incident)
}
