package store

import (
	"context"

	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

// A Source is a database that is open for reading only.
type Source interface {
	sqldb.Engine
	// CheckFile calls report with each damage of the file.
	CheckFile(ctx context.Context, report func(damage string)) error
	// Changed returns an error if what was read may be from before and after a change.
	Changed() error
}

// OpenSource opens a database that has the schema of this release, for reading. It writes nothing,
// whether or not a server is running.
func OpenSource(ctx context.Context, database string) (Source, error) {
	if IsPostgres(database) {
		return postgres.OpenReadOnly(ctx, database)
	}
	return sqlite.OpenReadOnly(ctx, database)
}
