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

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// noHooks do nothing.
var noHooks = sqldb.Hooks{
	BeforeCommit:  func(*sqldb.Conn) error { return nil },
	AfterCommit:   func() {},
	AfterRollback: func() {},
}

func newPath(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.db") }

// open opens a database with a table of things. The test may close it.
func open(t *testing.T, path string, hooks sqldb.Hooks) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Hooks: hooks})
	check(t, err)
	t.Cleanup(func() {
		select {
		case <-db.closing:
		default:
			check(t, db.Close())
		}
	})
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error {
		return c.Run("CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
	})))
	return db
}

// do1 returns a write that belongs to no set.
func do1(fn func(*sqldb.Conn) error) sqldb.Write { return sqldb.Write{Do: fn} }

// insert inserts a thing.
func insert(c *sqldb.Conn, name string) error {
	_, err := c.Exec("INSERT INTO things (name) VALUES (?)", name)
	return err
}

// wantThings compares the things on disk.
func wantThings(t *testing.T, db *DB, want ...string) {
	t.Helper()
	var got []string
	check(t, db.ReadLoose(t.Context(), func(c *sqldb.Conn) (err error) {
		got, err = sqldb.All(c, func(row sqldb.Scanner) (name string, err error) {
			return name, row.Scan(&name)
		}, "SELECT name FROM things ORDER BY id")
		return err
	}))
	if !slices.Equal(got, want) {
		t.Errorf("on disk are %q, want %q", got, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw opens a file without the engine.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	check(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestADatabaseThatIsNotOursIsRefused(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    string
	}{
		{"a newer release wrote it", func(t *testing.T, path string) {
			check(t, open(t, path, noHooks).Close())
			db := raw(t, path)
			_, err := db.Exec("PRAGMA user_version = 999")
			check(t, err)
			check(t, db.Close())
		}, "newer release"},
		{"another program wrote it", func(t *testing.T, path string) {
			db := raw(t, path)
			_, err := db.Exec("CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 3")
			check(t, err)
			check(t, db.Close())
		}, "another program"},
		{"it is no database", func(t *testing.T, path string) {
			check(t, os.WriteFile(path, []byte(strings.Repeat("a text file\n", 100)), 0o600))
		}, "not a database"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			path := newPath(t)
			tc.prepare(t, path)
			before, err := os.ReadFile(path)
			check(t, err)
			db, err := Open(t.Context(), path, Options{Hooks: noHooks})
			if err == nil {
				db.Close()
				t.Fatal("it is opened")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want %q in it", err, tc.want)
			}
			after, err := os.ReadFile(path)
			check(t, err)
			if string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	path := newPath(t)
	db := open(t, path, noHooks)
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return insert(c, "a") })))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		check(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("the mode of %s is %v, want -rw-------", info.Name(), info.Mode())
		}
	}
}

func TestANewOrUpToDateDatabaseIsNotCopied(t *testing.T) {
	path := newPath(t)
	for range 2 {
		db, err := Open(t.Context(), path, Options{Hooks: noHooks, Migrating: func(from, to int, file string) {
			t.Errorf("a migration from %d to %d is announced, with a copy in %q", from, to, file)
		}})
		check(t, err)
		check(t, db.Close())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	check(t, err)
	if !slices.Equal(files, []string{path}) {
		t.Errorf("the folder holds %q", files)
	}
}

func TestProcessesThatCreateADatabaseTogetherBothOpenIt(t *testing.T) {
	for range 10 {
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
		check(t, errors.Join(<-opened, <-opened))
	}
}

func TestAReadIsOfOneMoment(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	count := func(c *sqldb.Conn) (n int) {
		check(t, c.Row("SELECT count(*) FROM things").Scan(&n))
		return n
	}
	for _, tc := range []struct {
		name string
		read func(context.Context, func(*sqldb.Conn) error) error
		grew bool
	}{{"Read", db.Read, false}, {"ReadLoose", db.ReadLoose, true}} {
		check(t, tc.read(t.Context(), func(c *sqldb.Conn) error {
			before := count(c)
			check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return insert(c, tc.name) })))
			if grew := count(c) > before; grew != tc.grew {
				t.Errorf("%s sees concurrent writes: %t, want %t", tc.name, grew, tc.grew)
			}
			return nil
		}))
	}
}

func TestFaultsHaveTheirClass(t *testing.T) {
	const schema = `
CREATE TABLE texts (name TEXT PRIMARY KEY) STRICT;
CREATE TABLE pairs (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
INSERT INTO things (id, name) VALUES (1, 'a');
INSERT INTO texts VALUES ('a');
INSERT INTO pairs VALUES (1, 1);`
	cases := []struct {
		name   string
		script string
		want   sqldb.Class
	}{
		{"a key that is there", "INSERT INTO things (id, name) VALUES (1, 'b')", sqldb.Duplicate},
		{"a unique value that is there", "INSERT INTO things (name) VALUES ('a')", sqldb.Duplicate},
		{"a text key that is there", "INSERT INTO texts VALUES ('a')", sqldb.Duplicate},
		{"a key of two columns that is there", "INSERT INTO pairs VALUES (1, 1)", sqldb.Duplicate},
		{"a value that is missing", "INSERT INTO things (name) VALUES (NULL)", sqldb.Other},
		{"a mistake in the SQL", "INSERT INTO nothing VALUES (1)", sqldb.Other},
		{
			"no room",
			"PRAGMA max_page_count = 1; CREATE TABLE more (a); INSERT INTO more VALUES (zeroblob(1000000))", sqldb.Full,
		},
		{"a file that cannot be written", "PRAGMA query_only = 1; INSERT INTO things (name) VALUES ('b')", sqldb.Failing},
		{
			"a file that cannot be opened",
			"ATTACH '/no/such/folder/ledger.db' AS other; SELECT * FROM other.sqlite_schema", sqldb.Failing,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			db := open(t, newPath(t), noHooks)
			check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return c.Run(schema) })))
			err := db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return c.Run(tc.script) }))
			if err == nil || sqldb.ClassOf(err) != tc.want {
				t.Errorf("got %v of class %d, want class %d", err, sqldb.ClassOf(err), tc.want)
			}
		})
	}
}

func TestAnotherProcessHoldsTheLock(t *testing.T) {
	path := newPath(t)
	db := open(t, path, noHooks)
	check(t, db.Write(t.Context(), do1(func(c *sqldb.Conn) error { return c.Run("PRAGMA busy_timeout = 50") })))
	other, err := raw(t, path).Conn(t.Context())
	check(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)

	ran := false
	write := do1(func(c *sqldb.Conn) error { ran = true; return insert(c, "a") })
	if err := db.Write(t.Context(), write); sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("got %v, want a fault of class Locked", err)
	}
	if ran {
		t.Error("the write ran without the lock")
	}
	wantThings(t, db)
	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	check(t, db.Write(t.Context(), write))
	wantThings(t, db, "a")
}

func TestAClosedDatabaseAnswersThatItIs(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	check(t, db.Close())
	nothing := func(*sqldb.Conn) error { return nil }
	for name, err := range map[string]error{
		"Read":      db.Read(t.Context(), nothing),
		"ReadLoose": db.ReadLoose(t.Context(), nothing),
		"Write":     db.Write(t.Context(), do1(nothing)),
	} {
		if !errors.Is(err, sqldb.ErrClosed) {
			t.Errorf("%s returns %v", name, err)
		}
	}
}

func TestCloseLetsQueuedWritesFinish(t *testing.T) {
	path := newPath(t)
	db := open(t, path, noHooks)
	release := hold(t, db)
	var answers []<-chan error
	var want []string
	for i := range 5 {
		name := fmt.Sprint("thing ", i)
		want = append(want, name)
		answers = append(answers, enqueue(t.Context(), db, do1(func(c *sqldb.Conn) error { return insert(c, name) })))
	}
	closed := make(chan error)
	go func() { closed <- db.Close() }()
	<-db.writer.stop
	release()
	for i, answer := range answers {
		if err := <-answer; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	check(t, <-closed)
	wantThings(t, open(t, path, noHooks), want...)
}
