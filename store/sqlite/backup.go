package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	driver "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/atomicfile"
)

// A Backup copies a database file, also while other processes write to it. The copy is one
// moment of the database, with all that was committed before it began.
type Backup struct {
	From string
	// Still says that no process has From open. Then its folder is not written to.
	Still bool
	// To is the path of the copy. No file may have that name. The copy gets it when it is
	// complete, verified and on disk.
	To string
	// Progress, if not nil, is called with how many bytes of how many are copied.
	Progress func(done, total int64)
	// Verify, if not nil, is called with the path of the complete copy. If it returns an error,
	// there is no copy. It may change the copy, and must close it.
	Verify func(path string) error
}

// Run copies the file. It returns the size of the copy in bytes. If it fails, it leaves no file.
func (b Backup) Run(ctx context.Context) (size int64, err error) {
	if err := CheckFree(b.To); err != nil {
		return 0, err
	}
	if err := checkLog(b.From); err != nil {
		return 0, err
	}
	return b.run(ctx)
}

// run copies a file whose log was checked.
func (b Backup) run(ctx context.Context) (size int64, err error) {
	if _, err := os.Stat(b.From); err != nil {
		return 0, err
	}
	return Create(b.To, func(temp string) error { return b.fill(ctx, temp) })
}

// Create creates a database file. fill writes it at a temporary path, where it is empty, and must
// close it. The file gets its name when it is on disk. No file may have that name. If Create fails,
// it leaves no file. It returns the size in bytes.
func Create(name string, fill func(temp string) error) (size int64, err error) {
	if err := CheckFree(name); err != nil {
		return 0, err
	}
	if err := removeStale(name); err != nil {
		return 0, err
	}
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp") // mode 0600
	if err != nil {
		return 0, err
	}
	temp := file.Name()
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			if removing := os.Remove(temp + suffix); removing != nil && !errors.Is(removing, fs.ErrNotExist) {
				err = errors.Join(err, removing)
			}
		}
	}()

	stop := flushInBackground(file)
	err = fill(temp)
	if err = errors.Join(err, stop()); err == nil {
		err = file.Sync()
	}
	// The connections to the file are closed: see createPrivate.
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(temp)
	if err != nil {
		return 0, err
	}
	return info.Size(), place(temp, name)
}

// fill copies the database to an empty file, and verifies the copy.
func (b Backup) fill(ctx context.Context, to string) error {
	if err := b.copy(ctx, to); err != nil {
		return fmt.Errorf("copy %s: %w", b.From, err)
	}
	if _, err := verifyCopy(ctx, to); err != nil {
		return fmt.Errorf("verify the copy of %s: %w", b.From, err)
	}
	if b.Verify != nil {
		return b.Verify(to)
	}
	return nil
}

// flushPause is the time between two flushes of a file that grows.
const flushPause = 100 * time.Millisecond

// flushInBackground flushes a file to disk while it is written and read, so that the last flush
// has little left to do. stop ends that, and returns the error of a flush.
func flushInBackground(file *os.File) (stop func() error) {
	ended, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for {
			select {
			case <-time.After(flushPause):
			case <-ended:
				return
			}
			if err := file.Sync(); err != nil {
				failed <- err
				return
			}
		}
	}()
	return func() error {
		close(ended)
		return <-failed
	}
}

// Backup writes a backup of the database. Until it is complete, the log grows.
func (db *DB) Backup(ctx context.Context, to string) (size int64, err error) {
	db.checkpointer.backups.Add(1)
	defer db.checkpointer.backups.Add(-1)
	if err := db.guard.check(); err != nil {
		return 0, err
	}
	return Backup{From: db.path, To: to}.run(ctx)
}

// CheckFree returns an error if a database at path would replace one, or take over the log of one.
func CheckFree(path string) error {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		switch _, err := os.Lstat(path + suffix); {
		case err == nil:
			return fmt.Errorf("%s exists already, and is not replaced (name another file, or move it away)", path+suffix)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return nil
}

// place gives a file its name, which no other file may have.
func place(temp, name string) error {
	err := os.Link(temp, name) // unlike os.Rename, it never replaces a file
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		// The file system has no hard links.
		if err = CheckFree(name); err == nil {
			err = os.Rename(temp, name)
		}
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncFolder(name)
}

const (
	// copyPages is the number of pages that are copied between two looks at the context.
	copyPages = 2000
	pageSize  = 4096
)

// A copier is a connection of the driver that can copy its database.
type copier interface {
	NewBackup(uri string) (*driver.Backup, error)
}

// copy copies the pages of the database to an empty file.
func (b Backup) copy(ctx context.Context, to string) (err error) {
	options, still := url.Values{}, fs.FileInfo(nil)
	if b.Still {
		if options, still, err = readOnly(b.From); err != nil {
			return err
		}
	}
	db, err := openFileAs(b.From, readerPragmas, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), changed(b.From, still)) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	if err := beginSnapshot(ctx, conn); err != nil {
		return err
	}
	return conn.Raw(func(connection any) error {
		source, ok := connection.(copier)
		if !ok {
			return fmt.Errorf("the driver %T cannot copy a database", connection)
		}
		// The copy needs no journal: it is deleted if it does not become complete.
		target, err := fileURI(to, []string{"journal_mode(off)", "synchronous(off)"}, url.Values{})
		if err != nil {
			return err
		}
		backup, err := source.NewBackup(target)
		if err != nil {
			return err
		}
		return errors.Join(b.steps(ctx, backup), backup.Finish())
	})
}

// beginSnapshot begins a transaction in which a connection sees one moment of a database of
// ledgerd, as long as that takes.
func beginSnapshot(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	var application, version int64
	err := conn.QueryRowContext(ctx, `
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)
FROM (SELECT count(*) FROM sqlite_schema)`).Scan(&application, &version)
	switch {
	case err != nil:
		return err
	case application != applicationID || version <= 0:
		return errors.New("not a database of ledgerd")
	}
	return nil
}

// steps copies all pages, some at a time.
func (b Backup) steps(ctx context.Context, backup *driver.Backup) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if more, err = backup.Step(copyPages); err != nil {
			return err
		}
		if b.Progress != nil {
			total := backup.PageCount()
			b.Progress(int64(total-backup.Remaining())*pageSize, int64(total)*pageSize)
		}
	}
	return nil
}
