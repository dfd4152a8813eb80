package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// noHooks are hooks that do nothing.
var noHooks = sqldb.Hooks{
	BeforeCommit:  func(*sqldb.Conn) error { return nil },
	AfterCommit:   func() {},
	AfterRollback: func() {},
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.db") }

// open opens a database. Its things are the rows of a table of the ledger. The test may close it.
func open(t *testing.T, path string, hooks sqldb.Hooks) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Hooks: hooks})
	must.OK(t, err)
	t.Cleanup(func() {
		select {
		case <-db.Closing:
		default:
			must.OK(t, db.Close())
		}
	})
	return db
}

// single returns a write without a set.
func single(fn func(*sqldb.Conn) error) sqldb.Write { return sqldb.Write{Do: fn} }

func insert(c *sqldb.Conn, name string) error {
	_, err := c.Exec("INSERT INTO expressions (text) VALUES (?)", name)
	return err
}

// wantThings checks which things are on disk.
func wantThings(t *testing.T, db *DB, want ...string) {
	t.Helper()
	var got []string
	must.OK(t, db.ReadLoose(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) (err error) {
		got, err = sqldb.All(c, func(row sqldb.Scanner) (name string, err error) {
			return name, row.Scan(&name)
		}, "SELECT text FROM expressions ORDER BY id")
		return err
	}))
	if !slices.Equal(got, want) {
		t.Errorf("things on disk: got %q, want %q", got, want)
	}
}

// openRaw opens a file without the engine.
func openRaw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := must.Get(sql.Open("sqlite", "file:"+path))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestOpenRefusesOtherDatabases(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    string
	}{
		{"database of a newer release", func(t *testing.T, path string) {
			must.OK(t, open(t, path, noHooks).Close())
			db := openRaw(t, path)
			_, err := db.Exec("PRAGMA user_version = 999")
			must.OK(t, err)
			must.OK(t, db.Close())
		}, "newer release"},
		{"database of another program", func(t *testing.T, path string) {
			db := openRaw(t, path)
			_, err := db.Exec("CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 3")
			must.OK(t, err)
			must.OK(t, db.Close())
		}, "another program"},
		{"empty database of another program", func(t *testing.T, path string) {
			db := openRaw(t, path)
			_, err := db.Exec("PRAGMA application_id = 7; PRAGMA user_version = 3")
			must.OK(t, err)
			must.OK(t, db.Close())
		}, "another program"},
		{"text file", func(t *testing.T, path string) {
			must.OK(t, os.WriteFile(path, []byte(strings.Repeat("a text file\n", 100)), 0o600))
		}, "not a database"},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			tc.prepare(t, path)
			before := must.Read(t, path)

			db, err := Open(t.Context(), path, Options{Hooks: noHooks})
			if err == nil {
				db.Close()
				t.Fatal("Open returned no error")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %q, want it to contain %q", err, tc.want)
			}

			after := must.Read(t, path)
			if string(after) != string(before) {
				t.Error("Open changed the file")
			}
		})
	}
}

func TestFilesArePrivate(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks, Serve: true})
	defer db.Close()
	must.OK(t, add(t.Context(), db, "a"))
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info := must.Get(os.Stat(path + suffix))(t)
		if info.Mode() != 0o600 {
			t.Errorf("the mode of %s is %v, want -rw-------", info.Name(), info.Mode())
		}
	}
}

func TestOpenCopiesOnlyToMigrate(t *testing.T) {
	path := newPath(t)
	for range 2 {
		db, err := Open(t.Context(), path, Options{Hooks: noHooks, Migrating: func(from, to int, file string) {
			t.Errorf("Migrating was called with %d, %d and %q", from, to, file)
		}})
		must.OK(t, err)
		must.OK(t, db.Close())
	}
	files := must.Get(filepath.Glob(filepath.Join(filepath.Dir(path), "*")))(t)
	if !slices.Equal(files, []string{path}) {
		t.Errorf("files in the folder: got %q, want only the database", files)
	}
}

func TestConcurrentOpensCreateOneDatabase(t *testing.T) {
	for range testenv.Pick(3, 3, 10) {
		path := newPath(t)
		opened := make(chan error)
		for range 2 {
			go func() {
				db, err := Open(context.Background(), path, Options{Hooks: noHooks})
				if err == nil {
					err = db.Close()
				}
				opened <- err
			}()
		}
		must.OK(t, errors.Join(<-opened, <-opened))
	}
}

func TestReadSeesOneSnapshot(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	count := func(c *sqldb.Conn) (n int) {
		must.OK(t, c.Row("SELECT count(*) FROM expressions").Scan(&n))
		return n
	}
	for _, tc := range []struct {
		name string
		read func(context.Context, sqldb.Reader, func(*sqldb.Conn) error) error
		grew bool
	}{{"Read", db.Read, false}, {"ReadLoose", db.ReadLoose, true}} {
		must.OK(t, tc.read(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
			before := count(c)
			must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return insert(c, tc.name) })))
			if grew := count(c) > before; grew != tc.grew {
				t.Errorf("%s sees concurrent writes: got %t, want %t", tc.name, grew, tc.grew)
			}
			return nil
		}))
	}
}

func TestErrorsAreClassified(t *testing.T) {
	t.Parallel()
	const schema = `
CREATE TABLE texts (name TEXT PRIMARY KEY) STRICT;
CREATE TABLE pairs (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
INSERT INTO expressions (id, text) VALUES (1, 'a');
INSERT INTO texts VALUES ('a');
INSERT INTO pairs VALUES (1, 1);`
	cases := []struct {
		name   string
		script string
		want   sqldb.Class
	}{
		{"duplicate integer key", "INSERT INTO expressions (id, text) VALUES (1, 'b')", sqldb.Duplicate},
		{"duplicate unique value", "INSERT INTO expressions (text) VALUES ('a')", sqldb.Duplicate},
		{"duplicate text key", "INSERT INTO texts VALUES ('a')", sqldb.Duplicate},
		{"duplicate key of two columns", "INSERT INTO pairs VALUES (1, 1)", sqldb.Duplicate},
		{"missing value", "INSERT INTO expressions (text) VALUES (NULL)", sqldb.Other},
		{"SQL error", "INSERT INTO nothing VALUES (1)", sqldb.Other},
		{
			"full database",
			"PRAGMA max_page_count = 1; CREATE TABLE more (a); INSERT INTO more VALUES (zeroblob(1000000))", sqldb.Full,
		},
		{"read-only database", "PRAGMA query_only = 1; INSERT INTO expressions (text) VALUES ('b')", sqldb.Failing},
		{
			"missing folder",
			"ATTACH '/no/such/folder/ledger.db' AS other; SELECT * FROM other.sqlite_schema", sqldb.Failing,
		},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			db := open(t, newPath(t), noHooks)
			must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error { return c.Run(schema) })))
			err := db.Write(t.Context(), single(func(c *sqldb.Conn) error { return c.Run(tc.script) }))
			if err == nil || sqldb.ClassOf(err) != tc.want {
				t.Errorf("got error %v of class %d, want class %d", err, sqldb.ClassOf(err), tc.want)
			}
		})
	}
}

func TestLockOfAnotherProcess(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path, noHooks)
	db.Writer.Patience = 200 * time.Millisecond
	other, err := openRaw(t, path).Conn(t.Context())
	must.OK(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must.OK(t, err)

	ran := false
	write := single(func(c *sqldb.Conn) error { ran = true; return insert(c, "a") })
	if err := db.Write(t.Context(), write); sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("got %v, want an error of class Locked", err)
	}
	if ran {
		t.Error("the write ran without the lock")
	}
	wantThings(t, db)

	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	must.OK(t, err)
	must.Wait(t, "a write after the lock is released", func() bool { return db.Write(t.Context(), write) == nil })
	wantThings(t, db, "a")
}

func TestClosedDatabaseReturnsErrClosed(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	must.OK(t, db.Close())
	nothing := func(*sqldb.Conn) error { return nil }
	for name, err := range map[string]error{
		"Read":      db.Read(t.Context(), sqldb.Reader{}, nothing),
		"ReadLoose": db.ReadLoose(t.Context(), sqldb.Reader{}, nothing),
		"Write":     db.Write(t.Context(), single(nothing)),
	} {
		if !errors.Is(err, sqldb.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
}

func TestCloseWaitsForQueuedWrites(t *testing.T) {
	path := newPath(t)
	db := open(t, path, noHooks)
	release := blockWriter(t, db)

	var results []<-chan error
	var want []string
	for i := range 5 {
		name := fmt.Sprint("thing ", i)
		want = append(want, name)
		results = append(results, enqueue(t.Context(), db, single(func(c *sqldb.Conn) error { return insert(c, name) })))
	}

	closed := make(chan error)
	go func() { closed <- db.Close() }()
	<-db.Closing
	release()
	for i, result := range results {
		if err := <-result; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	must.OK(t, <-closed)
	wantThings(t, open(t, path, noHooks), want...)
}
