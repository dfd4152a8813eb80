package postgres

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
)

var update = flag.Bool("update", false, "write schema.sha256 instead of comparing with it")

// The comparison makes the tables of a new database as temporary ones, which are the same schema.
func TestSchemaDigestIsThatOfANewDatabase(t *testing.T) {
	t.Parallel()
	s := connected(t)
	must.OK(t, s.Create())
	_, schema, err := inspectAlone(s.Conn)
	must.OK(t, err)

	if *update {
		must.OK(t, os.WriteFile("schema.sha256", []byte(schema.Digest()+"\n"), 0o644))
		return
	}
	if strings.TrimSpace(digest) != schema.Digest() {
		t.Error("schema.sha256 is not the digest of the schema of a new database, so each start makes one to compare with: " +
			"run 'go test ./store/postgres -run SchemaDigest -update'")
	}
}

// connected returns a session on a new database.
func connected(t *testing.T) *Session {
	t.Helper()
	s, err := Connect(t.Context(), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// A database that was migrated from the first schema is as a new one, and both are known.
func TestNewAndMigratedDatabasesHaveTheSameSchema(t *testing.T) {
	t.Parallel()
	_, latest, err := scripts()
	must.OK(t, err)
	schemas := make(map[string]sqldb.Schema)
	for name, fn := range map[string]func(*sqldb.Conn) error{
		"new":      func(c *sqldb.Conn) error { return create(c, latest) },
		"migrated": func(c *sqldb.Conn) error { return runScripts(c, 0, latest) },
	} {
		s := connected(t)
		must.OK(t, s.Run("BEGIN"))
		must.OK(t, fn(s.Conn))
		must.OK(t, s.Run("COMMIT"))
		must.OK(t, checkSchema(s.Conn))
		_, schemas[name], err = inspectAlone(s.Conn)
		must.OK(t, err)

		for o := range schemas[name] {
			rows, want := 0, 0
			if o.Kind == "table" {
				must.OK(t, s.Row("SELECT count(*) FROM "+o.Name).Scan(&rows))
			}
			if o.Kind == "table" && (o.Name == "ledger" || o.Name == "cursor_key") {
				want = 1
			}
			if rows != want {
				t.Errorf("%s: %s has %d rows, want %d", name, o.Name, rows, want)
			}
		}
	}

	if err := schemas["new"].Compare(schemas["migrated"]); err != nil {
		t.Errorf("a new database differs from a migrated one: %v", err)
	}
}

// Both engines have the same tables, with the same columns, types, defaults and what may be NULL.
func TestBothEnginesHaveTheSameTables(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	must.OK(t, err)
	must.OK(t, db.Close())
	rows, err := openFile(t, path).Query(`
SELECT concat_ws(' ', t.name || '.' || c.name, lower(c.type), iif(c."notnull" OR c.pk, 'NOT NULL', NULL),
  'DEFAULT ' || replace(c.dflt_value, 'x''', ''''))
FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'`)
	must.OK(t, err)
	defer rows.Close()
	var file, server []string
	for rows.Next() {
		var line string
		must.OK(t, rows.Scan(&line))
		file = append(file, line)
	}
	must.OK(t, rows.Err())

	s := connected(t)
	must.OK(t, s.Create())
	must.OK(t, s.Each(func(row sqldb.Scanner) error {
		var line string
		err := row.Scan(&line)
		server = append(server, line)
		return err
	}, `
SELECT concat_ws(' ', table_name || '.' || column_name,
  CASE data_type WHEN 'bigint' THEN 'integer' WHEN 'bytea' THEN 'blob' ELSE 'text' END,
  CASE is_nullable WHEN 'NO' THEN 'NOT NULL' END,
  'DEFAULT ' || CASE split_part(column_default, '::', 1) WHEN '''-1''' THEN '-1' WHEN '''\x''' THEN ''''''
    WHEN 'nextval(''ids''' THEN NULL ELSE split_part(column_default, '::', 1) END)
FROM information_schema.columns WHERE table_schema = current_schema()
  AND table_name <> 'ledger' AND NOT (table_name = 'orgs' AND column_name IN ('writes', 'stamp'))`))

	if len(file) < 400 {
		t.Fatalf("the file has %d columns, want more", len(file))
	}
	for _, line := range file {
		if !slices.Contains(server, line) {
			t.Errorf("only SQLite has %s", line)
		}
	}
	for _, line := range server {
		if !slices.Contains(file, line) {
			t.Errorf("only PostgreSQL has %s", line)
		}
	}
}
