package sqlite

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

var update = flag.Bool("update", false, "write schema.sha256 instead of comparing with it")

func TestSchemaDigestIsThatOfANewDatabase(t *testing.T) {
	files := must.Get(scripts())(t)
	schema := must.Get(schemaOf(len(files), len(files)))(t)
	if *update {
		must.OK(t, os.WriteFile("schema.sha256", []byte(schema.Digest()+"\n"), 0o644))
		return
	}
	if strings.TrimSpace(digest) != schema.Digest() {
		t.Error("schema.sha256 is not the digest of the schema of a new database, so each start makes one to compare with: " +
			"run 'go test ./store/sqlite -run SchemaDigest -update'")
	}
}

// raising makes every read token an admin when its use is noted.
const raising = `CREATE TRIGGER raise AFTER UPDATE ON tokens BEGIN
UPDATE tokens SET permission = 4 WHERE id = NEW.id; END`

// forge returns a statement that changes the schema as no statement of SQL can.
func forge(change string) string {
	return "PRAGMA writable_schema = ON; " + change + "; PRAGMA writable_schema = RESET"
}

// plant runs statements on a file, as anybody who has it can.
func plant(t *testing.T, path, statements string) {
	t.Helper()
	db := openRaw(t, path)
	_, err := db.Exec(statements)
	must.OK(t, errors.Join(err, db.Close()))
}

func TestWhatIsPlantedInASchemaIsRefused(t *testing.T) {
	plants := []struct{ name, plant, want string }{
		{"a trigger", raising, `trigger "raise" of "tokens" is unknown`},
		{"a view", "CREATE VIEW shown AS SELECT * FROM tokens", `view "shown" is unknown`},
		{"a view in place of a table", "ALTER TABLE tokens RENAME TO kept; CREATE VIEW tokens AS SELECT * FROM kept",
			`view "tokens" is unknown`},
		{"a trigger on a view", "CREATE VIEW v AS SELECT 1 AS a; " +
			"CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN SELECT 1; END", `trigger "t" of "v" is unknown`},
		{"a table", "CREATE TABLE notes (text TEXT)", `table "notes" is unknown`},
		{"a table named as one of SQLite's", forge("INSERT INTO sqlite_schema SELECT type, 'sqlite_stat1', " +
			"'sqlite_stat1', rootpage, 'CREATE TABLE sqlite_stat1(tbl,idx,stat CHECK (1))' FROM sqlite_schema " +
			"WHERE name = 'clock'"), `table "sqlite_stat1" is unknown`},
		{"a table that hides a pragma", "CREATE TABLE pragma_application_id (application_id); " +
			"INSERT INTO pragma_application_id VALUES (1818519396)", `table "pragma_application_id" is unknown`},
		{"a virtual table", "CREATE VIRTUAL TABLE texts USING fts5(text)", `table "texts" is unknown`},
		{"another virtual table", "CREATE VIRTUAL TABLE boxes USING rtree(id, a, b)", `table "boxes" is unknown`},
		{"a column", "ALTER TABLE tokens ADD COLUMN note TEXT", `table "tokens" was changed`},
		{"a generated column", "ALTER TABLE tokens ADD COLUMN note TEXT AS (hex(hash))", `table "tokens" was changed`},
		{"a default", forge("UPDATE sqlite_schema SET sql = replace(sql, 'hash         BLOB    NOT NULL UNIQUE', " +
			"'hash BLOB NOT NULL DEFAULT 1 UNIQUE') WHERE name = 'tokens'"), `table "tokens" was changed`},
		{"a constraint", forge("UPDATE sqlite_schema SET sql = replace(sql, 'text TEXT    NOT NULL UNIQUE', " +
			"'text TEXT NOT NULL UNIQUE CHECK (length(text) < 9)') WHERE name = 'expressions'"),
			`table "expressions" was changed`},
		{"another collation", forge("UPDATE sqlite_schema SET sql = replace(sql, 'text TEXT    NOT NULL', " +
			"'text TEXT COLLATE NOCASE NOT NULL') WHERE name = 'expressions'"), `table "expressions" was changed`},
		{"an index", "CREATE INDEX tokens_by_name ON tokens (name)", `index "tokens_by_name" of "tokens" is unknown`},
		{"an index on an expression", "CREATE INDEX tokens_by_name ON tokens (lower(name))", `index "tokens_by_name"`},
		{"a partial index that misses rows", "DROP INDEX commits_failing; CREATE INDEX commits_failing " +
			"ON commits (repo_id, failing_since, id) WHERE failing_since > 99",
			`index "commits_failing" of "commits" was changed`},
		{"an index that is gone", "DROP INDEX commits_failing", `index "commits_failing" of "commits" is missing`},
		{"a name in another case", "ALTER TABLE clock RENAME TO c; ALTER TABLE c RENAME TO Clock",
			`table "Clock" is unknown`},
		{"a table without its constraints", forge("UPDATE sqlite_schema SET sql = " +
			"'CREATE TABLE expressions (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)' WHERE name = 'expressions'"),
			`table "expressions" was changed`},
		{"a text that ends for SQLite before it ends", forge("UPDATE sqlite_schema SET sql = 'CREATE TABLE expressions (" +
			"id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) --' || char(0) || char(10) || 'STRICT' " +
			"WHERE name = 'expressions'"), `table "expressions" was changed`},
		{"a table that has the rows of another", forge("UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM " +
			"sqlite_schema WHERE name = 'tokens') WHERE name = 'sessions'"), `table "sessions" was changed`},
		{"statistics that are the rows of another table", "ANALYZE; " + forge("UPDATE sqlite_schema SET rootpage = (SELECT "+
			"rootpage FROM sqlite_schema WHERE name = 'tokens') WHERE name = 'sqlite_stat1'"),
			`table "sqlite_stat1" is unknown`},
		{"a table of Litestream with a trigger", "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); " +
			"CREATE TRIGGER t AFTER INSERT ON _litestream_seq BEGIN DELETE FROM tokens; END",
			`trigger "t" of "_litestream_seq"`},
		{"a table of Litestream with another column", "CREATE TABLE _litestream_lock (id INTEGER, note TEXT)",
			`table "_litestream_lock" is unknown`},
		{"another table of Litestream", "CREATE TABLE _litestream_x (id INTEGER)", `table "_litestream_x" is unknown`},
		{"a name that changes the terminal", "CREATE TABLE \"\x1b[2J\" (id INTEGER)", `table "\x1b[2J" is unknown`},
		{"a long name", "CREATE TABLE " + strings.Repeat("a", 10_000) + " (id INTEGER)",
			`table "` + strings.Repeat("a", 60) + `" is unknown`},
	}
	for made, empty := range map[string]string{"new": newFile(t), "migrated": migratedFile(t)} {
		ledger := must.Read(t, empty)
		for _, p := range plants {
			t.Run(made+", "+p.name, func(t *testing.T) {
				t.Parallel()
				path := newPath(t)
				must.OK(t, os.WriteFile(path, ledger, 0o600))
				plant(t, path, p.plant)
				before := must.Read(t, path)

				db, err := Open(t.Context(), path, Options{Hooks: noHooks})
				if err == nil {
					must.OK(t, db.Close())
				}
				wantDifference(t, "Open", err, p.want)
				if db, err = OpenReadOnly(t.Context(), path); err == nil {
					must.OK(t, db.Close())
				}
				wantDifference(t, "OpenReadOnly", err, p.want)
				if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
					t.Errorf("the file was changed, or %v", err)
				}
			})
		}
	}
}

// newFile returns the path of an empty ledger of this release.
func newFile(t *testing.T) (path string) {
	t.Helper()
	path = newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	return path
}

// migratedFile returns the path of an empty ledger that all migrations have made.
func migratedFile(t *testing.T) (path string) {
	t.Helper()
	path = newPath(t)
	c, err := Connect(t.Context(), openRaw(t, path))
	must.OK(t, err)
	must.OK(t, migrateAll(c, must.Get(scripts())(t), 0, nil))
	must.OK(t, c.Close())
	return path
}

// wantDifference checks that an error names a difference of a schema.
func wantDifference(t *testing.T, what string, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*sqldb.SchemaError](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %s", what, err, want)
	}
}

// unpack writes a database of an earlier release to a new folder, and returns its path.
func unpack(t *testing.T, file string) (path string) {
	t.Helper()
	packed := must.Get(os.Open(file))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	text := must.Get(io.ReadAll(unpacked))(t)
	path = newPath(t)
	must.OK(t, os.WriteFile(path, text, 0o600))
	return path
}

func TestSchemasOfEarlierReleasesAreKnown(t *testing.T) {
	t.Parallel()
	files := must.Get(filepath.Glob("../testdata/schemas/v*.db.gz"))(t)
	for version := 7; version < len(must.Get(scripts())(t)); version++ { // version 6 came with version 7
		if file := fmt.Sprintf("../testdata/schemas/v%d.db.gz", version); !slices.Contains(files, file) {
			t.Errorf("there is no database of version %d: make it with testdata/make-schemas.sh", version)
		}
	}
	for _, file := range append(files, "../testdata/v5.db.gz") {
		if _, current, err := SchemaOf(t.Context(), unpack(t, file)); current || err != nil {
			t.Errorf("%s: it is current: %t, %v", filepath.Base(file), current, err)
		}
	}
}

func TestPlantedDatabasesOfEarlierReleasesAreNotMigrated(t *testing.T) {
	path := unpack(t, "../testdata/schemas/v17.db.gz")
	plant(t, path, raising)
	before, err := os.ReadFile(path)
	must.OK(t, err)
	_, err = Open(t.Context(), path, Options{Hooks: noHooks})
	wantDifference(t, "Open", err, `trigger "raise" of "tokens" is unknown`)
	_, _, err = SchemaOf(t.Context(), path)
	wantDifference(t, "SchemaOf", err, `trigger "raise" of "tokens" is unknown`)

	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file was changed, or %v", err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) > 1 {
		t.Errorf("there are the files %q", files)
	}
}

func TestVersionsOfNoReleaseAreRefused(t *testing.T) {
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	plant(t, path, "PRAGMA user_version = -1")
	want := "schema version -1 is not valid"

	_, _, err := SchemaOf(t.Context(), path)
	wantMessage(t, "SchemaOf", err, want)
	db, err := OpenReadOnly(t.Context(), path)
	if err == nil {
		must.OK(t, db.Close())
	}
	wantMessage(t, "OpenReadOnly", err, want)
	if db, err = Open(t.Context(), path, Options{Hooks: noHooks}); err == nil {
		must.OK(t, db.Close())
	}
	wantMessage(t, "Open", err, want)
	_, err = Backup{From: path, To: path + ".copy"}.Run(t.Context())
	wantMessage(t, "Backup", err, "not a database of ledgerd")
}

// What a journal next to a file would change is not in what is read of the file alone.
func TestFilesWithARollbackJournalAreNotRead(t *testing.T) {
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	link := filepath.Join(t.TempDir(), "link.db")
	must.OK(t, os.Symlink(path, link))
	must.OK(t, os.WriteFile(path+"-journal", []byte("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"), 0o600))

	for _, name := range []string{path, link} {
		_, _, err := SchemaOf(t.Context(), name)
		wantMessage(t, "SchemaOf", err, path+"-journal contains data")
		db, err := OpenReadOnly(t.Context(), name)
		if err == nil {
			must.OK(t, db.Close())
		}
		wantMessage(t, "OpenReadOnly", err, path+"-journal contains data")
		_, err = Backup{From: name, Still: true, To: name + ".copy"}.Run(t.Context())
		wantMessage(t, "Backup", err, path+"-journal contains data")
	}
	must.OK(t, os.Truncate(path+"-journal", 0)) // as another program leaves it
	_, _, err := SchemaOf(t.Context(), path)
	must.OK(t, err)
}

// wantMessage checks that an error has a message.
func wantMessage(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got error %v, want %q", what, err, want)
	}
}

func TestMessagesNameTenDifferences(t *testing.T) {
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	var tables strings.Builder
	for letter := 'a'; letter <= 'n'; letter++ {
		tables.WriteString("CREATE TABLE extra_" + string(letter) + " (id INTEGER);")
	}
	plant(t, path, tables.String())
	_, _, err := SchemaOf(t.Context(), path)
	wantDifference(t, "SchemaOf", err, `table "extra_j" is unknown, and 4 more (use a backup`)
}

func TestSchemasThatAreNoPlants(t *testing.T) {
	cases := []struct{ name, change string }{
		{"tables of Litestream", "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER); " +
			"CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER);"},
		{"statistics of SQLite", "INSERT INTO expressions (text) VALUES ('a'); ANALYZE"},
		{"other comments and spaces, as of an earlier release", forge("UPDATE sqlite_schema SET sql = 'CREATE TABLE  " +
			"expressions ( -- those'' of contracts'||char(10)||'  id INTEGER PRIMARY KEY,/* once */text TEXT NOT NULL UNIQUE" +
			"'||char(10)||') STRICT' WHERE name = 'expressions'")},
		{"a vacuum", "VACUUM"},
		{"nothing", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{newFile(t), migratedFile(t)} {
				plant(t, path, c.change)
				must.OK(t, open(t, path, noHooks).Close())
				db, err := OpenReadOnly(t.Context(), path)
				must.OK(t, err)
				must.OK(t, db.Close())
			}
		})
	}
}

func TestPlainKeepsWhatHasAMeaning(t *testing.T) {
	cases := []struct{ statement, want string }{
		{"CREATE  TABLE\n\tt (a -- one\n, b /* two */ )", "CREATE TABLE t (a , b )"},
		{"a/**/b", "a b"},
		{"DEFAULT '--  ''/* x'", "DEFAULT '--  ''/* x'"},
		{`"a  b" [c  d] ` + "`e  f`", `"a  b" [c  d] ` + "`e  f`"},
		{`[a"b  ] "c`, `[a"b  ] "c`},
		{"a /* b", "a"},
		{"a -- b\x00\n c", "a -- b\x00\n c"},
		{"a\vb", "a\vb"},
	}
	for _, c := range cases {
		if got := plain(c.statement); got != c.want {
			t.Errorf("%q: got %q, want %q", c.statement, got, c.want)
		}
	}
}

func TestDefinitionsOfTablesHaveNoOrder(t *testing.T) {
	for _, c := range []struct{ statement, want string }{
		{"CREATE TABLE t (b TEXT, a BLOB, UNIQUE (b, a)) STRICT", "CREATE TABLE t (UNIQUE (b, a), a BLOB, b TEXT) STRICT"},
		{`CREATE TABLE "t" (b, a)`, "CREATE TABLE t (a, b)"},
		{"CREATE TABLE t (b DEFAULT '(,)', a CHECK (a IN (1, (2))))",
			"CREATE TABLE t (a CHECK (a IN (1, (2))), b DEFAULT '(,)')"},
		{"CREATE TABLE t (b [,], a \"),\", -- )\n\tc)", `CREATE TABLE t (a "),", b [,], c)`},
		{"CREATE TABLE t (b, a), (d, c)", "CREATE TABLE t (a, b), (d, c)"},
		{"CREATE TABLE t (b, a", "CREATE TABLE t (b, a"},
		{"CREATE TABLE u (b, a)", "CREATE TABLE u (b, a)"},
		{`CREATE TABLE "u (b, a)`, `CREATE TABLE "u (b, a)`},
		{"CREATE INDEX t ON u (b, a)", "CREATE INDEX t ON u (b, a)"},
		{"CREATE TABLE t (b, a)\x00", "CREATE TABLE t (a, b)\x00"},
	} {
		if got := definition(sqldb.Object{Kind: "table", Name: "t", Of: "t"}, c.statement); got != c.want {
			t.Errorf("%q: got %q, want %q", c.statement, got, c.want)
		}
	}
}

// What another process plants in a file that is open does not run, on any connection.
func TestConnectionsRunNoPrograms(t *testing.T) {
	path := newPath(t)
	db := open(t, path, noHooks)
	plant(t, path, "CREATE VIEW shown AS SELECT text FROM expressions; CREATE TRIGGER raise AFTER INSERT ON expressions "+
		"BEGIN INSERT INTO expressions (text) VALUES ('planted'); END")
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return insert(c, "a") })))
	wantThings(t, db, "a")
	plant(t, path, "INSERT INTO expressions (text) VALUES ('b')") // which does run it
	wantThings(t, db, "a", "b", "planted")

	read := func(db *DB, query string) error {
		return db.ReadLoose(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
			return c.Each(func(sqldb.Scanner) error { return nil }, query)
		})
	}
	if err := read(db, "SELECT * FROM shown"); err == nil || !strings.Contains(err.Error(), "access to view") {
		t.Errorf("a view is read: %v", err)
	}
	must.OK(t, db.ReadLoose(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
		var trusted int
		if err := c.Row("PRAGMA trusted_schema").Scan(&trusted); err != nil || trusted != 0 {
			t.Errorf("the schema is trusted: %d, %v", trusted, err)
		}
		return nil
	}))
	err := db.Write(t.Context(), single(func(c *sqldb.Conn) error {
		return c.Run("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'shown'")
	}))
	if err == nil || !strings.Contains(err.Error(), "may not be modified") {
		t.Errorf("the schema table is written: %v", err)
	}

	// A backup of it is a copy, and is refused like the file.
	copied := filepath.Join(t.TempDir(), "backup.db")
	_, err = db.Backup(t.Context(), copied)
	must.OK(t, err)
	_, _, err = SchemaOf(t.Context(), copied)
	wantDifference(t, "SchemaOf", err, `trigger "raise" of "expressions"`)
}

// A release that waited while a newer one migrated the database does not use it.
func TestDatabasesThatANewerReleaseHasJustMigrated(t *testing.T) {
	path := newPath(t)
	must.OK(t, open(t, path, noHooks).Close())
	plant(t, path, "PRAGMA user_version = 999")
	c, err := Connect(t.Context(), openRaw(t, path))
	must.OK(t, err)
	defer c.Close()
	files, err := scripts()
	must.OK(t, err)
	wantMessage(t, "migrateAlone", migrateAlone(c, path, files, Options{}), "schema version 999 is too new")
}
