package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A journal collects the incidents that an engine reports.
type journal struct {
	mu           sync.Mutex
	begun, ended []sqldb.Incident
}

func (j *journal) options() Options {
	return Options{
		Hooks: noHooks,
		Began: func(t sqldb.Incident) { j.mu.Lock(); defer j.mu.Unlock(); j.begun = append(j.begun, t) },
		Ended: func(t sqldb.Incident) { j.mu.Lock(); defer j.mu.Unlock(); j.ended = append(j.ended, t) },
	}
}

func (j *journal) counts() (begun, ended int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.begun), len(j.ended)
}

// openWith opens a database with options. The test must close it.
func openWith(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, o)
	must.OK(t, err)
	return db
}

func add(ctx context.Context, db *DB, name string) error {
	return db.Write(ctx, single(func(c *sqldb.Conn) error { return insert(c, name) }))
}

// thingsIn lists the things in a database file that is not open.
func thingsIn(t *testing.T, path string) []string {
	t.Helper()
	raw := openRaw(t, path)
	defer raw.Close()
	rows, err := raw.Query("SELECT text FROM expressions ORDER BY id")
	must.OK(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		must.OK(t, rows.Scan(&name))
		names = append(names, name)
	}
	must.OK(t, rows.Err())
	return names
}

// copyTo copies a file.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	data := must.Read(t, from)
	must.OK(t, os.WriteFile(to, data, 0o600))
}

// An accident is what can happen to the files of an open database, and what is left.
type accident struct {
	name   string
	do     func(t *testing.T, path string)
	reason string
	// after lists the things in the file at the path after Close, and in the rescued copy.
	// A single dash stands for no file, or one that is not a database.
	after, rescued []string
}

var accidents = []accident{
	{
		"database deleted", func(t *testing.T, path string) { must.OK(t, os.Remove(path)) },
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"all files deleted", func(t *testing.T, path string) {
			must.OK(t, errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")))
		},
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database moved", func(t *testing.T, path string) { must.OK(t, os.Rename(path, path+".moved")) },
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database replaced", func(t *testing.T, path string) {
			must.OK(t, os.Rename(path, path+".old"))
			must.OK(t, os.WriteFile(path, []byte("another file "+strings.Repeat("x", minFile)), 0o600))
		},
		"the database file was replaced", []string{"-"}, []string{"a"},
	},
	{
		"folder moved", func(t *testing.T, path string) {
			must.OK(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved"))
			must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
		},
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database emptied", func(t *testing.T, path string) { must.OK(t, os.Truncate(path, 0)) },
		"the database file was emptied", []string{"-"}, nil,
	},
	{
		"log deleted", func(t *testing.T, path string) { must.OK(t, os.Remove(path+"-wal")) },
		"the write-ahead log was deleted or moved", []string{"a"}, []string{"a"},
	},
	{
		"log replaced", func(t *testing.T, path string) {
			must.OK(t, os.Rename(path+"-wal", path+"-wal.old"))
			must.OK(t, os.WriteFile(path+"-wal", []byte("the log of another process"), 0o600))
		},
		"the write-ahead log was replaced", []string{}, []string{"a"},
	},
	{
		"index of the log deleted", func(t *testing.T, path string) { must.OK(t, os.Remove(path+"-shm")) },
		"the index of the write-ahead log was deleted or moved", []string{"a"}, []string{"a"},
	},
}

// If a file is gone, the server is not ready, nothing more is written, this is reported
// once, and no data is lost: Close does not copy the log into a file that is gone, and
// does not touch the files of another process.
func TestFaultFileIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete or move open files")
	}
	for _, m := range accidents {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "data", "ledger.db")
			must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
			j := new(journal)
			db := openWith(t, path, j.options())
			must.OK(t, add(t.Context(), db, "a"))
			must.OK(t, db.Ready())

			m.do(t, path)
			before, _ := os.ReadFile(path)
			for i := range 100 { // enough to trigger a checkpoint
				if err := add(t.Context(), db, fmt.Sprint("lost ", i)); sqldb.ClassOf(err) != sqldb.Gone {
					t.Fatalf("write %d: got %v, want an error of class Gone", i, err)
				}
			}
			if err := db.Ready(); err == nil || !strings.Contains(err.Error(), m.reason) {
				t.Errorf("Ready: got %v, want %q", err, m.reason)
			}
			must.Wait(t, "the incident is reported", func() bool { n, _ := j.counts(); return n > 0 })

			closeErr := db.Close()
			if closeErr == nil || !strings.Contains(closeErr.Error(), m.reason) {
				t.Errorf("Close: got %v, want %q", closeErr, m.reason)
			}
			files := j.begun[:1]
			if files[0].Kind != sqldb.FileIncident || files[0].Help == "" || len(j.begun) > 2 {
				t.Errorf("reported %+v, want one incident of the file", j.begun)
			}

			switch {
			case slices.Equal(m.after, []string{"-"}):
				if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
					t.Errorf("the file at the path has changed: %d bytes, then %d", len(before), len(after))
				}
			case len(m.after) > 0:
				if got := thingsIn(t, path); !slices.Equal(got, m.after) {
					t.Errorf("things at the path: got %q, want %q", got, m.after)
				}
			}
			if m.rescued != nil {
				if got := thingsIn(t, path+".rescued-1"); !slices.Equal(got, m.rescued) {
					t.Errorf("rescued things: got %q, want %q", got, m.rescued)
				}
			}
		})
	}
}

// Except in a server, a reading connection is made when a read needs it. It does not read a file that has
// taken the place of the database since, while the connections that are open keep reading the database.
func TestFaultConnectionsAreNotMadeToOtherFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	other := filepath.Join(t.TempDir(), "other.db")
	must.OK(t, openWith(t, other, new(journal).options()).Close())
	db := openWith(t, path, new(journal).options())
	defer db.Close() //nolint:errcheck // it says that the file was replaced
	must.OK(t, add(t.Context(), db, "a"))
	if n := db.readDB.Stats().OpenConnections; n != 0 {
		t.Errorf("%d reading connections are open before the first read", n)
	}

	server := openWith(t, filepath.Join(t.TempDir(), "ledger.db"), Options{Hooks: noHooks, Serve: true})
	if n := server.readDB.Stats().OpenConnections; n < 2 {
		t.Errorf("a server has %d reading connections", n)
	}
	must.OK(t, server.Close())

	read := func(lane sqldb.Lane) (things int, err error) {
		err = db.Read(t.Context(), sqldb.Reader{Lane: lane}, func(c *sqldb.Conn) error {
			return c.Row("SELECT count(*) FROM expressions").Scan(&things)
		})
		return things, err
	}
	if n, err := read(sqldb.Requests); n != 1 || err != nil {
		t.Fatalf("read %d things, %v; want 1", n, err)
	}
	must.OK(t, os.Link(path, path+".away"))
	must.OK(t, os.Rename(other, path))
	if n, err := read(sqldb.Checks); sqldb.ClassOf(err) != sqldb.Gone {
		t.Errorf("a new connection read %d things, %v; want an error of class Gone", n, err)
	}
	if n, err := read(sqldb.Requests); n != 1 || err != nil {
		t.Errorf("an open connection read %d things, %v; want 1", n, err)
	}
	must.OK(t, os.Rename(path+".away", path))
	if n, err := read(sqldb.Checks); n != 1 || err != nil {
		t.Errorf("after the file came back, a new connection read %d things, %v; want 1", n, err)
	}
}

// Close does not touch the log of another process.
func TestFaultForeignLogIsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	must.OK(t, os.Rename(path+"-wal", path+"-wal.old"))
	must.OK(t, os.WriteFile(path+"-wal", []byte("the log of another process"), 0o600))
	before := must.Read(t, path)
	if err := db.Close(); err == nil {
		t.Error("Close returns no error")
	}
	after := must.Read(t, path)
	log := must.Read(t, path+"-wal")
	if !bytes.Equal(before, after) || string(log) != "the log of another process" {
		t.Error("Close changed the database or the log")
	}
}

// The commands of the message that reports a deleted database save all data.
func TestFaultHelpSavesTheData(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	must.OK(t, add(t.Context(), db, "a"))
	must.OK(t, errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")))
	must.Wait(t, "the incident is reported", func() bool { n, _ := j.counts(); return n > 0 })

	commands := regexp.MustCompile(`'(cp [^']*)'`).FindStringSubmatch(j.begun[0].Help)
	if commands == nil {
		t.Fatalf("no commands in %q", j.begun[0].Help)
	}
	shell := exec.Command("sh", "-c", commands[1])
	shell.Dir = t.TempDir()
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", commands[1], err, out)
	}
	if got := thingsIn(t, filepath.Join(shell.Dir, "saved.db")); !slices.Equal(got, []string{"a"}) {
		t.Errorf("saved things: got %q, want a", got)
	}
	_ = db.Close()
}

// A file that is moved back is used again, without a restart.
func TestFaultFileComesBack(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	must.OK(t, os.Rename(path, path+".moved"))
	must.Wait(t, "not ready", func() bool { return db.Ready() != nil })
	if err := add(t.Context(), db, "a"); sqldb.ClassOf(err) != sqldb.Gone {
		t.Errorf("got %v, want an error of class Gone", err)
	}

	must.OK(t, os.Rename(path+".moved", path))
	must.OK(t, add(t.Context(), db, "b"))
	must.Wait(t, "ready again", func() bool { return db.Ready() == nil })
	must.Wait(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	must.OK(t, db.Close())
	if j.ended[0].Count < 2 || len(j.begun) != 1 {
		t.Errorf("reported %+v and %+v, want one incident of several failures", j.begun, j.ended)
	}
	if got := thingsIn(t, path); !slices.Equal(got, []string{"b"}) {
		t.Errorf("things: got %q, want b", got)
	}
}

// A symbolic link to the database is followed, and noticed if it is changed.
func TestFaultLinkIsChanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege")
	}
	path := newPath(t)
	link := path + ".link"
	must.OK(t, errors.Join(createPrivate(path), os.Symlink(path, link)))
	db := openWith(t, link, Options{Hooks: noHooks})
	must.OK(t, add(t.Context(), db, "a"))

	other := filepath.Join(t.TempDir(), "other.db")
	copyTo(t, path, other)
	must.OK(t, errors.Join(os.Remove(link), os.Symlink(other, link)))
	if err := add(t.Context(), db, "b"); sqldb.ClassOf(err) != sqldb.Gone {
		t.Errorf("got %v, want an error of class Gone", err)
	}
	if err := db.Close(); err == nil {
		t.Error("Close returns no error")
	}
}

// SQLite would delete a log that it finds without its database.
func TestFaultLogWithoutDatabase(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    string // part of the error; empty if the database opens
	}{
		{"missing database", func(t *testing.T, path string) { must.OK(t, os.Remove(path)) }, "is missing"},
		{"empty database", func(t *testing.T, path string) { must.OK(t, os.Truncate(path, 0)) }, "is empty"},
		{"cut database", func(t *testing.T, path string) { must.OK(t, os.Truncate(path, 100)) }, "is empty"},
		{"link to a missing database", func(t *testing.T, path string) {
			must.OK(t, os.Rename(path+"-wal", path+"-2-wal"))
			must.OK(t, os.Remove(path))
			must.OK(t, os.WriteFile(path+"-2", nil, 0o600))
			must.OK(t, os.Symlink(path+"-2", path))
		}, "is empty"},
		{"log without data", func(t *testing.T, path string) {
			must.OK(t, os.Remove(path))
			must.OK(t, os.Truncate(path+"-wal", walHeader))
		}, ""},
		{"database with its log", func(*testing.T, string) {}, ""},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			original, path := newPath(t), newPath(t)
			db := openWith(t, original, Options{Hooks: noHooks})
			copyTo(t, original, path)
			copyTo(t, original+"-wal", path+"-wal") // as after kill -9
			must.OK(t, db.Close())
			tc.prepare(t, path)
			files, err := filepath.Glob(path + "*")
			must.OK(t, err)

			db, err = Open(t.Context(), path, Options{Hooks: noHooks})
			if err == nil {
				defer db.Close()
			}
			if tc.want == "" {
				must.OK(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "-wal") {
				t.Fatalf("got %v, want an error that contains %q and names the log", err, tc.want)
			}
			if after, _ := filepath.Glob(path + "*"); !slices.Equal(files, after) {
				t.Errorf("files: got %q, want %q", after, files)
			}
		})
	}
}

func TestFaultSecondServer(t *testing.T) {
	path := newPath(t)
	serve := Options{Hooks: noHooks, Serve: true}
	db := openWith(t, path, serve)
	link := path + ".link"
	must.OK(t, errors.Join(createPrivate(path), os.Symlink(path, link)))
	for _, name := range []string{path, link} {
		second, err := Open(t.Context(), name, serve)
		if err == nil {
			second.Close()
			t.Fatalf("%s: a second server opened the database", name)
		}
		if !strings.Contains(err.Error(), "another server") {
			t.Errorf("got %q, want it to name another server", err)
		}
	}
	if lock, err := TakeLock(path); err == nil {
		lock.Release()
		t.Error("the lock of a running server is free")
	}

	command := openWith(t, path, Options{Hooks: noHooks}) // next to the server
	must.OK(t, add(t.Context(), command, "a"))
	must.OK(t, command.Close())
	must.OK(t, add(t.Context(), db, "b"))
	must.OK(t, db.Close())

	lock, err := TakeLock(path)
	must.OK(t, err)
	if db, err := Open(t.Context(), path, serve); err == nil {
		db.Close()
		t.Error("a server opened a database that is being replaced")
	}
	must.OK(t, lock.Release())
	must.OK(t, openWith(t, path, serve).Close())
}
