package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// digest is that of the schema that the migrations make. A database with another one is compared with
// what they make, which takes longer. 'go test ./store/sqlite -run SchemaDigest -update' writes it.
//
//go:embed migrations/schema.sha256
var digest string

// allowed has the tables of others that a database may have, with exactly these definitions: those
// with statistics of SQLite's ANALYZE, and those of Litestream, v0.3 and v0.5.
var allowed = [...]struct{ table, definition string }{
	{"sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)\n"},
	{"sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)\n"},
	{"_litestream_seq", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)\n"},
	{"_litestream_lock", "CREATE TABLE _litestream_lock (id INTEGER)\n"},
}

// checkObjects returns the version of a database's schema. It returns a *sqldb.SchemaError if a schema
// of this release has other objects than the migrations up to this version make. It writes nothing.
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
	want, err := migrated(version)
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
		s.Add(o, plain(text)+pages(o, root, taken))
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

// migrated returns the schema that the migrations up to a version make. Their Go steps only change rows.
func migrated(version int) (s sqldb.Schema, err error) {
	files, err := scripts()
	if err != nil {
		return nil, err
	}
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

	if err := migrateAll(c, files[:version], 0, nil); err != nil {
		return nil, fmt.Errorf("make the schema of version %d: %w", version, err)
	}
	_, s, err = readSchema(c)
	return s, err
}

// plain returns the text of a statement without comments, and with single spaces between its tokens.
// Releases differ in these. What is quoted stays as it is, and so does a text that SQLite reads only up
// to a zero byte.
func plain(statement string) string {
	if strings.Contains(statement, "\x00") {
		return statement
	}
	var b strings.Builder
	for rest := statement; rest != ""; {
		n := gap(rest)
		if n > 0 && b.Len() > 0 && n < len(rest) {
			b.WriteByte(' ')
		}
		rest = rest[n:]
		n = quoted(rest)
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	return b.String()
}

// gap returns the length of the white space and the comments at the beginning of a text.
func gap(text string) int {
	rest := text
	for {
		before := len(rest)
		rest = strings.TrimLeft(rest, " \t\n\f\r")
		if strings.HasPrefix(rest, "--") {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		if strings.HasPrefix(rest, "/*") {
			_, rest, _ = strings.Cut(rest[2:], "*/")
		}
		if len(rest) == before {
			return len(text) - before
		}
	}
}

// quoted returns the length of the quoted text, or else of the one byte, at the beginning of a text.
func quoted(text string) int {
	if text == "" {
		return 0
	}
	end := text[:1]
	switch end {
	case "[":
		end = "]"
	case "'", `"`, "`":
	default:
		return 1
	}
	// A doubled quote is the end of a text and the beginning of the next one.
	if i := strings.Index(text[1:], end); i >= 0 {
		return i + 2
	}
	return len(text)
}
