package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A source is a database that is read in one transaction.
type source struct {
	*sqldb.Conn
	tables []table
	// identity identifies a database on a server. It is empty for a file.
	identity string
	// unchanged returns an error if what was read may be from before and after a change.
	unchanged func() error
}

// readSource runs fn with a database as the source.
func readSource(ctx context.Context, database string, fn func(source) error) (err error) {
	db, err := store.OpenSource(ctx, database)
	if err != nil {
		return fmt.Errorf("read %s: %w", store.Redacted(database), err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Read(ctx, inBackground(), func(c *sqldb.Conn) error {
		from, err := describe(c, store.IsPostgres(database))
		if err != nil {
			return fmt.Errorf("read %s: %w", store.Redacted(database), err)
		}
		from.unchanged = db.Changed
		return fn(from)
	})
}

// describe describes the database of a connection.
func describe(c *sqldb.Conn, isServer bool) (from source, err error) {
	from.Conn = c
	if !isServer {
		from.tables, err = fileSchema().tables(c)
		return from, err
	}
	if err := takeTime(c); err != nil {
		return from, err
	}
	if from.identity, err = identify(c); err != nil {
		return from, err
	}
	from.tables, err = serverSchema().tables(c)
	return from, err
}
