package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// digest is that of the schema of a new database. A database with another one is compared with a new one, which takes
// longer. 'go test ./store/sqlite -run SchemaDigest -update' writes it.
//
//go:embed schema.sha256
var digest string

// allowed has the tables of others that a database may have, with exactly these definitions: those
// with statistics of SQLite's ANALYZE, and those of Litestream, v0.3 and v0.5.
var allowed = [...]struct{ table, definition string }{
	{"sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)\n"},
	{"sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)\n"},
	{"_litestream_seq", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)\n"},
	{"_litestream_lock", "CREATE TABLE _litestream_lock (id INTEGER)\n"},
}

// checkObjects returns the version of a database's schema. It returns a *sqldb.SchemaError if the schema of this
// release, or of an earlier one, has other objects than ledgerd makes. It writes nothing.
func checkObjects(c *sqldb.Conn, latest int) (version int, err error) {
	version, got, err := readSchema(c)
	if err != nil || version > latest {
		return version, err
	}
	for _, a := range allowed {
		o := sqldb.Object{Kind: "table", Name: a.table, Of: a.table}
		if got[o] == a.definition {
			delete(got, o)
		}
	}
	if version == latest && got.Digest() == strings.TrimSpace(digest) {
		return version, nil
	}
	want, err := schemaOf(version, latest)
	if err != nil {
		return version, err
	}
	return version, got.Compare(want)
}

// readSchema reads the version and the objects of a schema, as they are at one moment.
func readSchema(c *sqldb.Conn) (version int, s sqldb.Schema, err error) {
	if err := c.Run("BEGIN"); err != nil {
		return 0, nil, fmt.Errorf("begin to read the schema: %w", err)
	}
	defer func() { err = errors.Join(err, c.Run("ROLLBACK")) }()
	if version, err = schemaVersion(c); err != nil {
		return 0, nil, err
	}

	s = make(sqldb.Schema)
	taken := make(map[int64]bool)
	err = c.Each(func(row sqldb.Scanner) error {
		var o sqldb.Object
		var text string
		var root int64
		if err := row.Scan(&o.Kind, &o.Name, &o.Of, &text, &root); err != nil {
			return err
		}
		s.Add(o, definition(o, text)+pages(o, root, taken))
		return nil
	}, `
SELECT coalesce(type, ''), coalesce(name, ''), coalesce(tbl_name, ''), coalesce(sql, ''), coalesce(rootpage, 0)
FROM sqlite_schema`)
	if err != nil {
		return 0, nil, fmt.Errorf("read the schema: %w", err)
	}
	return version, s, nil
}

// pages marks the definition of a table or an index that has no root page of its own: its rows are those of
// another one.
func pages(o sqldb.Object, root int64, taken map[int64]bool) (mark string) {
	if o.Kind != "table" && o.Kind != "index" {
		return "" // it has no rows
	}
	if root <= 0 || taken[root] {
		mark = " -- in the pages of another"
	}
	taken[root] = true
	return mark
}

// schemaOf returns the schema of a version: of the latest that of a new database, and of others what the migrations
// make. The Go steps of these only change rows.
func schemaOf(version, latest int) (sqldb.Schema, error) {
	if version == latest {
		return made(func(c *sqldb.Conn) error { return create(c, version) })
	}
	files, err := scripts()
	if err != nil {
		return nil, err
	}
	return made(func(c *sqldb.Conn) error { return migrateAll(c, files[:version], 0, nil) })
}

// made returns the schema that fn makes, in a database in memory.
func made(fn func(*sqldb.Conn) error) (s sqldb.Schema, err error) {
	db, err := openHardened("file::memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := Connect(context.Background(), db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	if err := fn(c); err != nil {
		return nil, fmt.Errorf("make a schema to compare with: %w", err)
	}
	_, s, err = readSchema(c)
	return s, err
}
