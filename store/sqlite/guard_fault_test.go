package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// SQLite may close the files after each accident but those in which it would write to
// the files of another process, or delete the log of an emptied database.
func TestFaultCanClose(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not delete or move open files")
	}
	unsafe := map[string]bool{"database emptied": true, "log replaced": true, "folder is a file": true}
	all := append(accidents[:len(accidents):len(accidents)], accident{
		name: "folder is a file",
		do:   replaceFolder,
	})
	for _, a := range all {
		path := filepath.Join(t.TempDir(), "data", "ledger.db")
		must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
		db := openWith(t, path, Options{Hooks: noHooks})
		if !db.guard.canClose() {
			t.Error("before the accident: SQLite may not close the files")
		}
		a.do(t, path)
		if got := db.guard.canClose(); got == unsafe[a.name] {
			t.Errorf("%s: SQLite may close the files: got %v, want %v", a.name, got, !unsafe[a.name])
		}
		_ = db.Close()
	}
}

// replaceFolder replaces the folder of a database with a file.
func replaceFolder(t *testing.T, path string) {
	t.Helper()
	folder := filepath.Dir(path)
	must.OK(t, errors.Join(os.Rename(folder, folder+".moved"), os.WriteFile(folder, nil, 0o600)))
}

// A file that cannot be checked counts as gone. The error names the reason, but not the
// path, which is nothing for clients.
func TestFaultFileCannotBeChecked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := filepath.Join(t.TempDir(), "data", "ledger.db")
	must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
	db := openWith(t, path, Options{Hooks: noHooks})
	replaceFolder(t, path)
	err := db.guard.check()
	if sqldb.ClassOf(err) != sqldb.Gone || !strings.Contains(err.Error(), "cannot check the database file") {
		t.Errorf("got %v, want an error of class Gone that says that the file cannot be checked", err)
	}
	if err != nil && strings.Contains(err.Error(), path) {
		t.Errorf("the error %q names the path", err)
	}
	_ = db.Close()
}

// The help says where the database is only if it has moved.
func TestFaultHelpNamesTheNewPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	must.OK(t, os.Remove(path+"-wal"))
	if help := db.guard.help(); strings.Contains(help, "the database is at") {
		t.Errorf("the database has not moved: %s", help)
	}
	must.OK(t, os.Rename(path, path+".moved"))
	if help := db.guard.help(); !strings.Contains(help, "the database is at "+path+".moved now") {
		t.Errorf("the help does not name the new path: %s", help)
	}
	_ = db.Close()
}
