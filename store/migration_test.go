package store

import (
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/sqlite"
	"github.com/ledgerd/ledgerd/store/sqlite/migrations"
	"github.com/ledgerd/ledgerd/store/txn"
)

// UnpackV5 writes the database of schema version 5 to a new directory, and returns its
// path.
func UnpackV5(t *testing.T) (path string) {
	t.Helper()
	return unpack(t, "testdata/v5.db.gz")
}

// unpackSchema returns a copy of the database that the release of a schema has made.
func unpackSchema(t *testing.T, version int) (path string) {
	t.Helper()
	return unpack(t, fmt.Sprintf("testdata/schemas/v%d.db.gz", version))
}

// unpack writes a compressed database to a new directory, and returns its path.
func unpack(t *testing.T, file string) (path string) {
	t.Helper()
	packed := must.Get(os.Open(file))(t)
	defer packed.Close()
	unpacked := must.Get(gzip.NewReader(packed))(t)
	database := must.Get(io.ReadAll(unpacked))(t)
	path = filepath.Join(t.TempDir(), "ledger.db")
	must.OK(t, os.WriteFile(path, database, 0o600))
	return path
}

// WhenV5 returns the time at which the database of version 5 was created.
func WhenV5(t *testing.T) time.Time {
	t.Helper()
	at := must.Read(t, "testdata/v5/at")
	return must.Get(time.Parse(time.RFC3339, strings.TrimSpace(string(at))))(t)
}

// migrate opens and closes a database, which migrates it.
func migrate(t *testing.T, path string, o Options) {
	t.Helper()
	s, err := Open(t.Context(), path, o)
	must.OK(t, err)
	must.OK(t, s.Close())
}

// readRaw opens a database file with the SQLite driver.
func readRaw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+path))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// texts reads the first column of a query.
func texts(t *testing.T, db *sql.DB, query string, args ...any) (list []string) {
	t.Helper()
	rows, err := db.Query(query, args...)
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		must.OK(t, rows.Scan(&text))
		list = append(list, text)
	}
	must.OK(t, rows.Err())
	return list
}

// rowsOf returns all rows of each table, as text, except the key of cursors, which is random.
func rowsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	all := make(map[string][]string)
	for _, table := range texts(t, db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'cursor_key'") {
		columns := texts(t, db, "SELECT 'quote(' || name || ')' FROM pragma_table_info(?)", table)
		all[table] = texts(t, db,
			"SELECT concat_ws(', ', "+strings.Join(columns, ", ")+") AS line FROM "+table+" ORDER BY line")
	}
	return all
}

func wantRows(t *testing.T, got, want map[string][]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Errorf("tables are %q, want %q", g, w)
	}
	for table := range want {
		if !slices.Equal(got[table], want[table]) {
			t.Errorf("%s: the %d rows differ from the %d wanted rows", table, len(got[table]), len(want[table]))
		}
	}
}

// wantIntact checks the integrity of a database and its schema version.
func wantIntact(t *testing.T, path, version string) {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	if got := texts(t, db, "PRAGMA integrity_check"); !slices.Equal(got, []string{"ok"}) {
		t.Errorf("%s: integrity check: %q", filepath.Base(path), got)
	}
	if got := texts(t, db, "PRAGMA foreign_key_check"); len(got) > 0 {
		t.Errorf("%s: violated foreign keys in %q", filepath.Base(path), got)
	}
	if got := texts(t, db, "PRAGMA user_version"); !slices.Equal(got, []string{version}) {
		t.Errorf("%s: schema version %s, want %s", filepath.Base(path), got, version)
	}
}

// wantFiles checks the names of the files in the directory of path.
func wantFiles(t *testing.T, path string, want ...string) {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("files are %q, want %q", got, want)
	}
}

// latest is the current schema version.
const latest = "24"

func TestMigrationCopiesDatabase(t *testing.T) {
	path := UnpackV5(t)
	before := rowsOf(t, path)
	migrate(t, path, Options{})
	wantFiles(t, path, "ledger.db", "ledger.db.v5")
	wantIntact(t, path, latest)
	wantIntact(t, path+".v5", "5")
	wantRows(t, rowsOf(t, path+".v5"), before)
	info := must.Get(os.Stat(path + ".v5"))(t)
	if info.Mode() != 0o600 {
		t.Errorf("mode of the copy is %v, want -rw-------", info.Mode())
	}

	migrate(t, path+".v5", Options{NoCopy: true}) // the copy can be migrated too
	wantRows(t, rowsOf(t, path+".v5"), rowsOf(t, path))
}

func TestMigrationWithoutCopy(t *testing.T) {
	t.Run("NoCopy", func(t *testing.T) {
		path := UnpackV5(t)
		migrate(t, path, Options{NoCopy: true})
		wantFiles(t, path, "ledger.db")
		wantIntact(t, path, latest)
	})
	t.Run("new, then up to date", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		for range 2 {
			migrate(t, path, Options{})
			wantFiles(t, path, "ledger.db")
		}
	})
	t.Run("already migrated", func(t *testing.T) {
		path := UnpackV5(t)
		migrate(t, path, Options{})
		must.OK(t, os.Remove(path+".v5"))
		migrate(t, path, Options{})
		wantFiles(t, path, "ledger.db")
	})
}

func TestMigrationReplacesOldCopy(t *testing.T) {
	path := UnpackV5(t)
	before := rowsOf(t, path)
	must.OK(t, os.WriteFile(path+".v5", []byte("half a copy"), 0o644))
	migrate(t, path, Options{})
	wantFiles(t, path, "ledger.db", "ledger.db.v5")
	wantIntact(t, path+".v5", "5")
	wantRows(t, rowsOf(t, path+".v5"), before)
}

func TestMigrationStopsIfCopyFails(t *testing.T) {
	path := UnpackV5(t)
	before := rowsOf(t, path)
	must.OK(t, os.MkdirAll(filepath.Join(path+".v5", "in the way"), 0o700))

	s, err := Open(t.Context(), path, Options{})
	if err == nil {
		s.Close()
		t.Fatal("the database was migrated without a copy")
	}
	for _, want := range []string{"--no-copy", path + ".v5"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error is %q, want it to contain %q", err, want)
		}
	}
	wantFiles(t, path, "ledger.db", "ledger.db.v5")
	wantIntact(t, path, "5")
	wantRows(t, rowsOf(t, path), before)

	must.OK(t, os.RemoveAll(path+".v5"))
	migrate(t, path, Options{})
	wantIntact(t, path, latest)
	wantIntact(t, path+".v5", "5")
}

func TestFailedMigrationStepIsRolledBack(t *testing.T) {
	addKeys := migrations.Steps()[6]
	faults := map[string]func(*sqldb.Conn) error{
		"at the start": func(*sqldb.Conn) error { return errors.New("a fault") },
		"in the middle": func(c *sqldb.Conn) error {
			return errors.Join(c.Run("UPDATE signers SET folded = dn"), errors.New("a fault"))
		},
		"at the end": func(c *sqldb.Conn) error { return errors.Join(addKeys(c), errors.New("a fault")) },
		"with a violated foreign key": func(c *sqldb.Conn) error {
			return errors.Join(addKeys(c), c.Run("UPDATE attestations SET key_id = 999 WHERE id = 1"))
		},
	}

	for name, step := range faults {
		t.Run(name, func(t *testing.T) {
			path := UnpackV5(t)
			before := rowsOf(t, path)
			db, err := sqlite.Open(t.Context(), path, sqlite.Options{
				Hooks: newStore(Options{}, "").db.Hooks(nil), NoCopy: true, Steps: map[int]func(*sqldb.Conn) error{6: step},
			})
			if err == nil {
				db.Close()
				t.Fatal("the database was migrated")
			}

			wantIntact(t, path, "5")
			wantRows(t, rowsOf(t, path), before)
			migrate(t, path, Options{NoCopy: true})
			wantIntact(t, path, latest)
		})
	}
}

func TestConcurrentMigrations(t *testing.T) {
	want := UnpackV5(t)
	before := rowsOf(t, want)
	migrate(t, want, Options{NoCopy: true})
	after := rowsOf(t, want)

	for range testenv.Pick(2, 2, 5) {
		path := UnpackV5(t)
		opened := make(chan error)
		for range 2 {
			go func() {
				s, err := Open(context.Background(), path, Options{})
				if err == nil {
					err = s.Close()
				}
				opened <- err
			}()
		}
		must.OK(t, errors.Join(<-opened, <-opened))
		migrate(t, path, Options{}) // if both were closed at once, the next one removes the log

		wantFiles(t, path, "ledger.db", "ledger.db.v5")
		wantIntact(t, path, latest)
		wantRows(t, rowsOf(t, path), after)
		wantIntact(t, path+".v5", "5")
		wantRows(t, rowsOf(t, path+".v5"), before)
	}
}

// A database of the release before gets the key of cursors. They stay valid when it is opened again.
func TestCursorsOutliveTheProcess(t *testing.T) {
	path := unpack(t, "testdata/schemas/v17.db.gz")
	next := ""
	for range 3 {
		s, err := Open(t.Context(), path, Options{NoCopy: true})
		must.OK(t, err)
		orgs, err := s.Orgs(t.Context(), txn.Query{Limit: 1})
		must.OK(t, err)
		q := txn.Query{Limit: 1, Cursor: next}
		events, err := s.Events(t.Context(), orgs.Data[0].Name, events.EventFilter{Query: q})
		must.OK(t, err)
		if next = events.NextCursor; next == "" {
			t.Fatal("the list of events has no further page")
		}
		must.OK(t, s.Close())
	}
}
