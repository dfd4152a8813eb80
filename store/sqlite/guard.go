package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A guard detects that a file of the database is no longer the one that was opened.
// SQLite would keep writing to a file that can never be opened again. The guard only
// checks paths: to open and close the file would release all locks that SQLite has on
// it.
type guard struct {
	files []guardedFile // the database, its log, and the index of the log
}

// A guardedFile is a file as it was when the database was opened. SQLite has it open,
// so no new file can get the same identity.
type guardedFile struct {
	name string // what it is
	path string
	info os.FileInfo
}

// newGuard returns a guard for the open database at path. SQLite must have opened the
// log. The path may be a symbolic link.
func newGuard(path string) (*guard, error) {
	real, err := filepath.EvalSymlinks(path) // SQLite also does so, to find the log
	if err != nil {
		return nil, err
	}
	g := &guard{files: []guardedFile{
		{name: "database file", path: path},
		{name: "write-ahead log", path: real + "-wal"},
		{name: "index of the write-ahead log", path: real + "-shm"},
	}}
	for i := range g.files {
		if g.files[i].info, err = os.Stat(g.files[i].path); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// minFile is the size of the smallest database, in bytes: one page.
const minFile = 512

// check returns an error of class Gone if a file was deleted, moved or replaced, or the
// database was emptied.
func (g *guard) check() error {
	for i, f := range g.files {
		info, err := os.Stat(f.path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return &sqldb.Error{Class: sqldb.Gone, Err: fmt.Errorf("cannot check the %s: %w", f.name, unwrapPath(err))}
		case err != nil:
			return gonef("the %s was deleted or moved", f.name)
		case !os.SameFile(info, f.info):
			return gonef("the %s was replaced by another file", f.name)
		case i == 0 && info.Size() < minFile:
			return gonef("the %s was emptied", f.name)
		}
	}
	return nil
}

func gonef(format string, args ...any) error {
	return &sqldb.Error{Class: sqldb.Gone, Err: fmt.Errorf(format, args...)}
}

// unwrapPath returns the error of a file operation without the path, which clients of
// the API must not see.
func unwrapPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// canClose reports whether SQLite may close the files. On closing, SQLite copies the
// log into the database and deletes the log, unless the database is not at its path. If
// only the log is missing, this is safe and saves all data. It is not safe if the log
// was replaced, because it belongs to another process, or if the database was emptied.
func (g *guard) canClose() bool {
	for i, f := range g.files {
		info, err := os.Stat(f.path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return false
		case err != nil:
		case i > 0 && !os.SameFile(info, f.info):
			return false
		case i == 0 && os.SameFile(info, f.info) && info.Size() < minFile:
			return false
		}
	}
	return true
}

// help returns where the data is while a file is gone, and what to do.
func (g *guard) help() string {
	const stop = "or stop the server, which writes a copy next to the old path"
	file, log := g.descriptor(0), g.descriptor(1)
	if file == "" || log == "" {
		return "do not kill this process, which still has the data open: put the original files back, " + stop
	}
	where := ""
	if now, err := os.Readlink(file); err == nil && now != g.files[0].path && !strings.HasSuffix(now, " (deleted)") {
		where = fmt.Sprintf("the database is at %s now; ", now)
	}
	return fmt.Sprintf("%sdo not kill this process, which still has the data open: copy it with "+
		"'cp %s saved.db && cp %s saved.db-wal', %s", where, file, log, stop)
}

// descriptor returns a path by which other processes can read an open file, even if it
// was deleted. It is empty if the system has none.
func (g *guard) descriptor(file int) string {
	if runtime.GOOS != "linux" {
		return ""
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		path := fmt.Sprintf("/proc/%d/fd/%s", os.Getpid(), entry.Name())
		if info, err := os.Stat(path); err == nil && os.SameFile(info, g.files[file].info) {
			return path
		}
	}
	return ""
}
