package sqlite

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// described are queries for what SQLite says of a schema: a line for each table, column, foreign key and index, and
// one for the order of the indexes of a table, in which plans choose among equal ones.
var described = []string{`
SELECT concat('table ', name, iif(strict, ' STRICT', ''), iif(wr, ' WITHOUT ROWID', '')) FROM pragma_table_list
WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'`, `
SELECT concat_ws(' ', 'column', t.name || '.' || c.name, c.type, iif(c."notnull", 'NOT NULL', NULL),
  'DEFAULT ' || c.dflt_value, 'key ' || nullif(c.pk, 0), 'hidden ' || nullif(c.hidden, 0))
FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table'`, `
SELECT concat_ws(' ', 'foreign key', t.name || '.' || f."from", 'to', f."table", f."to", f.seq, f.on_update,
  f.on_delete, f.match) FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f WHERE t.type = 'table'`, `
SELECT concat_ws(' ', 'index', i.name, 'of', t.name, i.origin, iif(i."unique", 'UNIQUE', NULL), group_concat(
  concat_ws(' ', x.name, x.coll, iif(x."desc", 'DESC', NULL)), ', ' ORDER BY x.seqno),
  (SELECT substr(sql, instr(sql, 'WHERE')) FROM sqlite_schema WHERE name = i.name AND i.partial))
FROM sqlite_schema t JOIN pragma_index_list(t.name) i JOIN pragma_index_xinfo(i.name) x
WHERE t.type = 'table' AND x.key GROUP BY t.name, i.name`, `
SELECT concat('indexes of ', t.name, ': ', group_concat(i.name, ', ' ORDER BY i.seq))
FROM sqlite_schema t JOIN pragma_index_list(t.name) i WHERE t.type = 'table' GROUP BY t.name`,
}

// unsaid has what SQLite says nowhere but in the statement of a table, and stays to the end of a column or constraint.
var unsaid = regexp.MustCompile(`\b(CHECK|COLLATE|AUTOINCREMENT|GENERATED|DEFERRABLE|ON CONFLICT)\b.*`)

// describe returns the lines of a schema.
func describe(t *testing.T, c *sqldb.Conn) (lines []string) {
	t.Helper()
	for _, query := range described {
		must.OK(t, c.Each(func(row sqldb.Scanner) error {
			var line string
			err := row.Scan(&line)
			lines = append(lines, line)
			return err
		}, query))
	}

	must.OK(t, c.Each(func(row sqldb.Scanner) error {
		var table, statement string
		err := row.Scan(&table, &statement)
		_, body, _ := strings.Cut(plain(statement), "(")
		list, _ := parts(body)
		for _, part := range list {
			name, _, _ := strings.Cut(part, " ")
			if text := unsaid.FindString(part); text != "" {
				lines = append(lines, "text "+table+"."+name+" "+text)
			}
		}
		return err
	}, "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
	return lines
}

// differ returns the lines that only one of two schemas has, which fn and other make.
func differ(t *testing.T, fn, other func(*sqldb.Conn) error) (differences []string) {
	t.Helper()
	var lines [2][]string
	for n, make := range []func(*sqldb.Conn) error{fn, other} {
		_, err := made(func(c *sqldb.Conn) error {
			if err := make(c); err != nil {
				return err
			}
			lines[n] = describe(t, c)
			return nil
		})
		must.OK(t, err)
		if len(lines[n]) < 500 {
			t.Fatalf("a schema has %d lines, want more", len(lines[n]))
		}
	}

	for n, sign := range []string{"-", "+"} {
		for _, line := range lines[n] {
			if !slices.Contains(lines[1-n], line) {
				differences = append(differences, sign+line)
			}
		}
	}
	return differences
}

// A database that was migrated from the first schema is as a new one.
func TestNewAndMigratedDatabasesHaveTheSameSchema(t *testing.T) {
	files := must.Get(scripts())(t)
	migrated := func(c *sqldb.Conn) error { return migrateAll(c, files, 0, nil) }
	for _, d := range differ(t, migrated, func(c *sqldb.Conn) error { return create(c, len(files)) }) {
		t.Errorf("%s (- has only a migrated database, + only a new one)", d)
	}

	// Those who open a database compare these.
	got := must.Get(made(migrated))(t)
	if err := got.Compare(must.Get(schemaOf(len(files), len(files)))(t)); err != nil {
		t.Error(err)
	}
}

// A new database has the rows that the migrations add to an empty one: the key of cursors.
func TestNewAndMigratedDatabasesHaveTheSameRows(t *testing.T) {
	files := must.Get(scripts())(t)
	for name, fn := range map[string]func(*sqldb.Conn) error{
		"new":      func(c *sqldb.Conn) error { return create(c, len(files)) },
		"migrated": func(c *sqldb.Conn) error { return migrateAll(c, files, 0, nil) },
	} {
		var filled []string
		_, err := made(func(c *sqldb.Conn) error {
			must.OK(t, fn(c))
			_, schema, err := readSchema(c)
			for o := range schema {
				rows := 0
				if o.Kind == "table" {
					must.OK(t, c.Row("SELECT count(*) FROM "+o.Name).Scan(&rows))
				}
				filled = append(filled, slices.Repeat([]string{o.Name}, rows)...)
			}
			return err
		})
		must.OK(t, err)
		if !slices.Equal(filled, []string{"cursor_key"}) {
			t.Errorf("%s: the tables with rows are %q, want cursor_key with one", name, filled)
		}
	}
}

func TestDifferencesOfSchemasAreNamed(t *testing.T) {
	for _, f := range []struct {
		from, to string
		want     []string
	}{
		{"CREATE INDEX repos_by_org ON repos (org_id);", "", []string{
			"-index repos_by_org of repos c org_id BINARY",
			"-indexes of repos: repos_deleted, repos_by_org, sqlite_autoindex_repos_1",
			"+indexes of repos: repos_deleted, sqlite_autoindex_repos_1"}},
		{"ON repos (org_id);", "ON repos (org_id DESC);", []string{
			"-index repos_by_org of repos c org_id BINARY", "+index repos_by_org of repos c org_id BINARY DESC"}},
		{"ON webhooks (id) WHERE active = 1", "ON webhooks (id) WHERE active = 0", []string{
			"-index webhooks_active of webhooks c id BINARY WHERE active = 1",
			"+index webhooks_active of webhooks c id BINARY WHERE active = 0"}},
		{"UNIQUE INDEX outbox_by_event", "INDEX outbox_by_event", []string{
			"-index outbox_by_event of outbox c UNIQUE webhook_id BINARY, event BINARY",
			"+index outbox_by_event of outbox c webhook_id BINARY, event BINARY"}},
		{"text TEXT    NOT NULL UNIQUE", "text TEXT    NOT NULL", []string{
			"-index sqlite_autoindex_expressions_1 of expressions u UNIQUE text BINARY",
			"-indexes of expressions: sqlite_autoindex_expressions_1"}},
		{"INTEGER NOT NULL DEFAULT 4", "INTEGER NOT NULL DEFAULT 0", []string{
			"-column commits.standing INTEGER NOT NULL DEFAULT 4", "+column commits.standing INTEGER NOT NULL DEFAULT 0"}},
		{"ping        TEXT, ", "ping        BLOB NOT NULL, ", []string{
			"-column outbox.ping TEXT", "+column outbox.ping BLOB NOT NULL"}},
		{"  PRIMARY KEY (log_id, level, n)", "  PRIMARY KEY (level, log_id, n)", []string{
			"-column tiles.log_id INTEGER NOT NULL key 1", "-column tiles.level INTEGER NOT NULL key 2",
			"-index sqlite_autoindex_tiles_1 of tiles pk UNIQUE log_id BINARY, level BINARY, n BINARY",
			"+column tiles.log_id INTEGER NOT NULL key 2", "+column tiles.level INTEGER NOT NULL key 1",
			"+index sqlite_autoindex_tiles_1 of tiles pk UNIQUE level BINARY, log_id BINARY, n BINARY"}},
		{"NULL COLLATE NOCASE, -- ~ and", "NULL, -- ~ and", []string{
			"-index sqlite_autoindex_repos_1 of repos u UNIQUE org_id BINARY, name NOCASE", "-text repos.name COLLATE NOCASE",
			"+index sqlite_autoindex_repos_1 of repos u UNIQUE org_id BINARY, name BINARY"}},
		{"CHECK (id = 1),\n  accepted_at", ",\n  accepted_at", []string{"-text clock.id CHECK (id = 1)"}},
		{"event       INTEGER REFERENCES events, ", "event       INTEGER, ", []string{
			"-foreign key outbox.event to events 0 NO ACTION NO ACTION NONE"}},
		{"'' -- the requirements that it meets, and until when; '': it is not of the mainline\n) STRICT", "''\n)",
			[]string{"-table merge_sides STRICT", "+table merge_sides"}},
		{"  PRIMARY KEY (later, earlier)\n) STRICT, WITHOUT ROWID", "  PRIMARY KEY (later, earlier)\n) STRICT", []string{
			"-table overlaps STRICT WITHOUT ROWID", "+table overlaps STRICT"}},
	} {
		t.Run(f.from, func(t *testing.T) {
			t.Parallel()
			if strings.Count(newSchema, f.from) != 1 {
				t.Fatalf("the schema has not one %q", f.from)
			}
			run := func(script string) func(*sqldb.Conn) error {
				return func(c *sqldb.Conn) error { return c.Run(script) }
			}
			got := differ(t, run(newSchema), run(strings.Replace(newSchema, f.from, f.to, 1)))
			if !slices.Equal(got, f.want) {
				t.Errorf("got %q, want %q", got, f.want)
			}
		})
	}
}
