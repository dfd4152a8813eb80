package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// serve opens a database as a server does, and adds things.
func serve(t *testing.T, path string, names ...string) *DB {
	t.Helper()
	db := must.Get(Open(t.Context(), path, Options{Hooks: noHooks, Serve: true}))(t)
	addAll(t, db, names...)
	return db
}

func addAll(t *testing.T, db *DB, names ...string) {
	t.Helper()
	for _, name := range names {
		must.OK(t, add(t.Context(), db, name))
	}
}

// kill puts the files of a database at another path, as they would be if its process were killed now.
func kill(t *testing.T, db *DB, to string) {
	t.Helper()
	copyTo(t, db.path, to)
	copyTo(t, db.path+"-wal", to+"-wal")
	must.OK(t, db.Close())
}

// backUp writes a backup of an open database.
func backUp(t *testing.T, db *DB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "backup.db")
	must.Get(db.Backup(t.Context(), path))(t)
	return path
}

// checkpointNow copies and empties the log of a database.
func checkpointNow(t *testing.T, db *DB) {
	t.Helper()
	must.Get(openRaw(t, db.path).Exec("PRAGMA wal_checkpoint(TRUNCATE)"))(t)
}

// refused are ways to put a file next to the log of a server that was killed.
var refused = []struct {
	name string
	do   func(t *testing.T, path string)
}{
	{"a backup of the same run", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		backup := backUp(t, db)
		addAll(t, db, "b")
		kill(t, db, path)
		copyTo(t, backup, path)
	}},
	{"a backup of the same run, next to a log that was restarted", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		backup := backUp(t, db)
		checkpointNow(t, db)
		addAll(t, db, "b")
		kill(t, db, path)
		copyTo(t, backup, path)
	}},
	{"a backup of an earlier run", func(t *testing.T, path string) {
		served := newPath(t)
		db := serve(t, served, "a")
		backup := backUp(t, db)
		must.OK(t, db.Close())
		kill(t, serve(t, served, "b"), path)
		copyTo(t, backup, path)
	}},
	{"the backup from which the database was restored", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		backup, restored := backUp(t, db), newPath(t)
		must.OK(t, db.Close())
		copyTo(t, backup, restored)
		kill(t, serve(t, restored, "b"), path)
		copyTo(t, backup, path)
	}},
	{"a backup of a killed server", func(t *testing.T, path string) {
		kill(t, serve(t, newPath(t), "a"), path)
		backup := filepath.Join(t.TempDir(), "backup.db")
		must.Get(Backup{From: path, To: backup}.Run(t.Context()))(t)
		copyTo(t, path, path+".served")
		kill(t, serve(t, path+".served", "b"), path)
		copyTo(t, backup, path)
	}},
	{"a copy by VACUUM INTO", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		backup := filepath.Join(t.TempDir(), "backup.db")
		must.Get(openRaw(t, db.path).Exec("VACUUM INTO ?", backup))(t)
		addAll(t, db, "b")
		kill(t, db, path)
		copyTo(t, backup, path)
	}},
	{"a copy of the file from before the start", func(t *testing.T, path string) {
		served := newPath(t)
		must.OK(t, serve(t, served, "a").Close())
		backup := served + ".backup"
		copyTo(t, served, backup)
		kill(t, serve(t, served, "b"), path)
		copyTo(t, backup, path)
	}},
	{"another database", func(t *testing.T, path string) {
		other := newPath(t)
		must.OK(t, serve(t, other, "a").Close())
		kill(t, serve(t, newPath(t), "b"), path)
		copyTo(t, other, path)
	}},
}

// A file next to the log of another one is not opened, and nothing is changed.
func TestLogOfAnotherFileIsRefused(t *testing.T) {
	for _, r := range refused {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			r.do(t, path)
			before := [][]byte{must.Read(t, path), must.Read(t, path+"-wal")}

			const want = "-wal belongs to another database file, "
			_, err := Open(t.Context(), path, Options{Hooks: noHooks, Serve: true})
			wantMessage(t, "Open for a server", err, want)
			_, err = Open(t.Context(), path, Options{Hooks: noHooks})
			wantMessage(t, "Open", err, want)
			_, err = OpenReadOnly(t.Context(), path)
			wantMessage(t, "OpenReadOnly", err, want)
			_, _, err = SchemaOf(t.Context(), path)
			wantMessage(t, "SchemaOf", err, want)
			_, err = Backup{From: path, To: path + ".new"}.Run(t.Context())
			wantMessage(t, "Backup", err, want)
			after := [][]byte{must.Read(t, path), must.Read(t, path+"-wal")}
			if !slices.EqualFunc(before, after, slices.Equal) {
				t.Error("the file or its log was changed")
			}

			must.OK(t, os.Remove(path+"-wal"))
			db := serve(t, path)
			wantThings(t, db, "a")
			must.OK(t, db.Close())
		})
	}
}

// opened are states of a database and its log that are as they should be.
var opened = []struct {
	name string
	do   func(t *testing.T, path string)
	want string // the things, with spaces
}{
	{"a killed server", func(t *testing.T, path string) { kill(t, serve(t, newPath(t), "a", "b"), path) }, "a b"},
	{"a killed server whose log was restarted", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		checkpointNow(t, db)
		addAll(t, db, "b")
		kill(t, db, path)
	}, "a b"},
	{"a server that was killed before it wrote", func(t *testing.T, path string) {
		kill(t, serve(t, newPath(t)), path)
	}, ""},
	{"a server that was killed twice", func(t *testing.T, path string) {
		kill(t, serve(t, newPath(t), "a"), path+".first")
		kill(t, serve(t, path+".first", "b"), path)
	}, "a b"},
	{"a command that was killed after a server", func(t *testing.T, path string) {
		kill(t, serve(t, newPath(t), "a"), path+".first")
		db := openWith(t, path+".first", Options{Hooks: noHooks})
		addAll(t, db, "b")
		kill(t, db, path)
	}, "a b"},
	{"a command that was killed before any server ran", func(t *testing.T, path string) {
		db := openWith(t, newPath(t), Options{Hooks: noHooks})
		addAll(t, db, "a")
		kill(t, db, path)
	}, "a"},
	{"a server that was killed next to Litestream", func(t *testing.T, path string) {
		db := openWith(t, newPath(t), Options{Hooks: noHooks, Serve: true, ExternalCheckpoints: true})
		addAll(t, db, "a")
		kill(t, db, path)
	}, "a"},
	{"copies of both files over those of a later run", func(t *testing.T, path string) {
		served := newPath(t)
		kill(t, serve(t, served, "a"), path)
		copyTo(t, path, served+".copy")
		copyTo(t, path+"-wal", served+".copy-wal")
		kill(t, serve(t, path, "b"), served+".later")
		copyTo(t, served+".later", path)
		copyTo(t, served+".later-wal", path+"-wal")
		copyTo(t, served+".copy", path)
		copyTo(t, served+".copy-wal", path+"-wal")
	}, "a"},
	{"a moved folder", func(t *testing.T, path string) {
		kill(t, serve(t, newPath(t), "a"), path)
		folder := filepath.Dir(path)
		must.OK(t, errors.Join(os.Rename(folder, folder+".moved"), os.Mkdir(folder, 0o700)))
		for _, suffix := range []string{"", "-wal"} {
			must.OK(t, os.Rename(filepath.Join(folder+".moved", "ledger.db")+suffix, path+suffix))
		}
	}, "a"},
	{"a server that was killed when a table had come", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		must.Get(openRaw(t, db.path).Exec("CREATE TABLE _litestream_lock (id INTEGER)"))(t)
		checkpointNow(t, db)
		addAll(t, db, "b")
		kill(t, db, path)
	}, "a b"},
	{"a server that was killed with a table only in the log", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		must.Get(openRaw(t, db.path).Exec("CREATE TABLE _litestream_lock (id INTEGER)"))(t)
		kill(t, db, path)
	}, "a"},
	{"a server that was killed with its generation only in the log", func(t *testing.T, path string) {
		killInStart(t, path, "", "")
	}, "a"},
	{"a server that was killed when its generation was in the file", func(t *testing.T, path string) {
		killInStart(t, path, "", "PRAGMA wal_checkpoint(PASSIVE)")
	}, "a"},
	{"a server that was killed after it started with a long log", func(t *testing.T, path string) {
		killInStart(t, path, "UPDATE expressions SET text = text; PRAGMA wal_autocheckpoint = 2", "")
	}, "a"},
	{"a server that was killed after another process had copied its log", func(t *testing.T, path string) {
		killInStart(t, path, "PRAGMA wal_checkpoint(PASSIVE)", "")
	}, "a"},
	{"a server that was killed after its log was copied and restarted", restartInStart, "a"},
	{"a copy by cp of the same run", func(t *testing.T, path string) { // the docs say that it is not noticed
		db := serve(t, newPath(t), "a")
		copyTo(t, db.path, path+".copy")
		addAll(t, db, "b")
		kill(t, db, path)
		copyTo(t, path+".copy", path)
	}, "a b"},
	{"a log of another program", func(t *testing.T, path string) {
		db := openWith(t, newPath(t), Options{Hooks: noHooks, Serve: true})
		raw := openRaw(t, db.path)
		must.Get(raw.Exec("INSERT INTO expressions (text) VALUES ('a')"))(t)
		kill(t, db, path)
	}, "a"},
	{"an empty log", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		checkpointNow(t, db)
		kill(t, db, path)
	}, "a"},
	{"a backup whose log was deleted", func(t *testing.T, path string) {
		db := serve(t, newPath(t), "a")
		backup := backUp(t, db)
		addAll(t, db, "b")
		kill(t, db, path)
		copyTo(t, backup, path)
		must.OK(t, os.Remove(path+"-wal"))
	}, "a"},
}

// killInStart kills a server while it begins its generation, with statements before and after it is written.
func killInStart(t *testing.T, path, before, after string) {
	t.Helper()
	served := newPath(t)
	must.OK(t, serve(t, served, "a").Close())
	db := openWith(t, served, Options{Hooks: noHooks, ExternalCheckpoints: true})
	c := must.Get(Connect(t.Context(), db.writeDB))(t)
	must.OK(t, errors.Join(setDefensive(c, false), c.Run(before)))
	must.Get(renewGeneration(c))(t)
	must.OK(t, errors.Join(c.Run(after), c.Close()))
	kill(t, db, path)
}

// restartInStart kills a server whose log was copied between the two writes of its start.
func restartInStart(t *testing.T, path string) {
	served := newPath(t)
	must.OK(t, serve(t, served, "a").Close())
	db := openWith(t, served, Options{Hooks: noHooks, ExternalCheckpoints: true})
	c := must.Get(Connect(t.Context(), db.writeDB))(t)
	must.OK(t, errors.Join(writeNothing(c), c.Run("PRAGMA wal_checkpoint(PASSIVE)"), setDefensive(c, false)))
	var cookie uint32
	must.OK(t, c.Row("PRAGMA schema_version").Scan(&cookie))
	must.OK(t, c.Run("PRAGMA schema_version = 4096000"))
	must.OK(t, errors.Join(copyGeneration(c, served, cookie>>generationShift), c.Close()))
	kill(t, db, path)
}

// A database with its own log is opened, in whatever state it was left.
func TestOwnLogIsOpened(t *testing.T) {
	for _, o := range opened {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			o.do(t, path)
			_, _, err := SchemaOf(t.Context(), path)
			must.OK(t, err)
			db := serve(t, path)
			wantThings(t, db, strings.Fields(o.want)...)
			must.OK(t, db.Close())
			must.OK(t, os.Remove(path+".lock"))
		})
	}
}
