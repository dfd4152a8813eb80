package store

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/store/postgres"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/txn"
)

// IsPostgres reports whether a database is the URL of one on a PostgreSQL server, and not a file.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// Redacted returns a database without the password in its URL.
func Redacted(database string) string {
	if !IsPostgres(database) {
		return database
	}
	parsed, err := url.Parse(database)
	if err != nil {
		return "postgres://…"
	}
	if parsed.Query().Has("password") {
		query := parsed.Query()
		query.Set("password", "xxxxx")
		parsed.RawQuery = query.Encode()
	}
	return parsed.Redacted()
}

// IsCurrent reports whether Open would neither create nor migrate the database.
func IsCurrent(ctx context.Context, database string) bool {
	if !IsPostgres(database) {
		return sqlite.IsCurrent(database)
	}
	db, err := postgres.OpenReadOnly(ctx, database)
	if err != nil {
		return false
	}
	_ = db.Close() // nothing was written
	return true
}

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

// NewReader returns a store on an engine that only reads. Close closes the engine.
func NewReader(db sqldb.Engine, o Options) *Store {
	s := newStore(o, "")
	s.db.Engine, s.db.Clock = db, txn.NewClock(o.now(time.Now), o.monotonic(), s.db.Log)
	return s
}
