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
	"time"

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

// openWith opens a database with a table of things. The test must close it.
func openWith(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, o)
	check(t, err)
	check(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error {
		return c.Run("CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
	})))
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
	rows, err := raw.Query("SELECT name FROM things ORDER BY id")
	check(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		check(t, rows.Scan(&name))
		names = append(names, name)
	}
	check(t, rows.Err())
	return names
}

// copyTo copies a file.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	check(t, err)
	check(t, os.WriteFile(to, data, 0o600))
}

// What can happen to the files of an open database, and what is left.
var accidents = []struct {
	name   string
	do     func(t *testing.T, path string)
	reason string
	// after lists the things in the file at the path after Close, and in the rescued copy.
	// A single dash stands for no file, or one that is not a database.
	after, rescued []string
}{
	{
		"database deleted", func(t *testing.T, path string) { check(t, os.Remove(path)) },
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"all files deleted", func(t *testing.T, path string) {
			check(t, errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")))
		},
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database moved", func(t *testing.T, path string) { check(t, os.Rename(path, path+".moved")) },
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database replaced", func(t *testing.T, path string) {
			check(t, os.Rename(path, path+".old"))
			check(t, os.WriteFile(path, []byte("another file "+strings.Repeat("x", minFile)), 0o600))
		},
		"the database file was replaced", []string{"-"}, []string{"a"},
	},
	{
		"folder moved", func(t *testing.T, path string) {
			check(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved"))
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
		},
		"the database file was deleted or moved", []string{"-"}, []string{"a"},
	},
	{
		"database emptied", func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) },
		"the database file was emptied", []string{"-"}, nil,
	},
	{
		"log deleted", func(t *testing.T, path string) { check(t, os.Remove(path+"-wal")) },
		"the write-ahead log was deleted or moved", []string{"a"}, []string{"a"},
	},
	{
		"log replaced", func(t *testing.T, path string) {
			check(t, os.Rename(path+"-wal", path+"-wal.old"))
			check(t, os.WriteFile(path+"-wal", []byte("the log of another process"), 0o600))
		},
		"the write-ahead log was replaced", []string{}, []string{"a"},
	},
	{
		"index of the log deleted", func(t *testing.T, path string) { check(t, os.Remove(path+"-shm")) },
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
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			j := new(journal)
			db := openWith(t, path, j.options())
			check(t, add(t.Context(), db, "a"))
			check(t, db.Ready())

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
			eventually(t, "the incident is reported", func() bool { n, _ := j.counts(); return n > 0 })

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

// Close does not touch the log of another process.
func TestFaultForeignLogIsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	check(t, os.Rename(path+"-wal", path+"-wal.old"))
	check(t, os.WriteFile(path+"-wal", []byte("the log of another process"), 0o600))
	before, err := os.ReadFile(path)
	check(t, err)
	if err := db.Close(); err == nil {
		t.Error("Close returns no error")
	}
	after, err := os.ReadFile(path)
	check(t, err)
	log, err := os.ReadFile(path + "-wal")
	check(t, err)
	if !bytes.Equal(before, after) || string(log) != "the log of another process" {
		t.Error("Close changed the database or the log")
	}
}

// The commands of the message that reports a deleted database save all data.
func TestFaultHelpSavesTheData(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	check(t, add(t.Context(), db, "a"))
	check(t, errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm")))
	eventually(t, "the incident is reported", func() bool { n, _ := j.counts(); return n > 0 })

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
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	check(t, os.Rename(path, path+".moved"))
	eventually(t, "not ready", func() bool { return db.Ready() != nil })
	if err := add(t.Context(), db, "a"); sqldb.ClassOf(err) != sqldb.Gone {
		t.Errorf("got %v, want an error of class Gone", err)
	}

	check(t, os.Rename(path+".moved", path))
	check(t, add(t.Context(), db, "b"))
	eventually(t, "ready again", func() bool { return db.Ready() == nil })
	eventually(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	check(t, db.Close())
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
	check(t, os.Symlink(path, link))
	db := openWith(t, link, Options{Hooks: noHooks})
	check(t, add(t.Context(), db, "a"))

	other := filepath.Join(t.TempDir(), "other.db")
	copyTo(t, path, other)
	check(t, errors.Join(os.Remove(link), os.Symlink(other, link)))
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
		{"missing database", func(t *testing.T, path string) { check(t, os.Remove(path)) }, "is missing"},
		{"empty database", func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) }, "is empty"},
		{"cut database", func(t *testing.T, path string) { check(t, os.Truncate(path, 100)) }, "is empty"},
		{"link to a missing database", func(t *testing.T, path string) {
			check(t, os.Rename(path+"-wal", path+"-2-wal"))
			check(t, os.Remove(path))
			check(t, os.WriteFile(path+"-2", nil, 0o600))
			check(t, os.Symlink(path+"-2", path))
		}, "is empty"},
		{"log without data", func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.Truncate(path+"-wal", walHeader))
		}, ""},
		{"database with its log", func(*testing.T, string) {}, ""},
	}

	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			original, path := newPath(t), newPath(t)
			db := openWith(t, original, Options{Hooks: noHooks})
			copyTo(t, original, path)
			copyTo(t, original+"-wal", path+"-wal") // as after kill -9
			check(t, db.Close())
			tc.prepare(t, path)
			files, err := filepath.Glob(path + "*")
			check(t, err)

			db, err = Open(t.Context(), path, Options{Hooks: noHooks})
			if err == nil {
				defer db.Close()
			}
			if tc.want == "" {
				check(t, err)
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
	check(t, os.Symlink(path, link))
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
	check(t, add(t.Context(), command, "a"))
	check(t, command.Close())
	check(t, add(t.Context(), db, "b"))
	check(t, db.Close())

	lock, err := TakeLock(path)
	check(t, err)
	if db, err := Open(t.Context(), path, serve); err == nil {
		db.Close()
		t.Error("a server opened a database that is being replaced")
	}
	check(t, lock.Release())
	check(t, openWith(t, path, serve).Close())
}

// While another process holds the write lock, callers can give up, each write fails
// after a while, later ones fail at once, and the engine is not ready. When the lock is
// free, it works again.
func TestFaultLockIsHeldForLong(t *testing.T) {
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	db.writer.patience = time.Second
	other, err := openRaw(t, path).Conn(t.Context())
	check(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)

	patient := make(chan error, 1)
	go func() { patient <- add(t.Context(), db, "patient") }()
	eventually(t, "the writer waits", func() bool { return db.writer.waited() > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error, 1)
	go func() { impatient <- add(ctx, db, "impatient") }()
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled write: got %v, want context.Canceled", err)
	}
	select {
	case err := <-patient:
		t.Errorf("the cancelled write waited for the other one, which returned %v", err)
	default:
	}

	if err := <-patient; sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("patient write: got %v, want an error of class Locked", err)
	}
	for range 1000 { // would take 1,000 s if each waited
		if err := add(t.Context(), db, "late"); sqldb.ClassOf(err) != sqldb.Locked {
			t.Fatalf("later write: got %v, want an error of class Locked", err)
		}
	}
	if db.TryWrite(single(func(c *sqldb.Conn) error { return insert(c, "tried") })) {
		t.Error("TryWrite queued a write")
	}
	if err := db.Ready(); sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("Ready: got %v, want an error of class Locked", err)
	}
	wantThings(t, db) // reads go on

	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	eventually(t, "ready again", func() bool { return db.Ready() == nil })
	check(t, add(t.Context(), db, "after"))
	eventually(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	wantThings(t, db, "after")
	check(t, db.Close())
	if len(j.begun) != 1 || j.begun[0].Kind != sqldb.WriteIncident {
		t.Errorf("reported %+v, want one incident", j.begun)
	}
}

// Close does not wait for a lock that another process holds.
func TestFaultCloseWhileLocked(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	db.writer.patience = 100 * time.Millisecond
	other, err := openRaw(t, path).Conn(t.Context())
	check(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)
	if err := add(t.Context(), db, "a"); sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("got %v, want an error of class Locked", err)
	}
	check(t, db.Close())
}

// While the disk is full, the engine is not ready. It detects without a request that
// writing works again.
func TestFaultFullDisk(t *testing.T) {
	j := new(journal)
	db := openWith(t, newPath(t), j.options())
	limit := func(pages int) {
		check(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error {
			return c.Run(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		})))
	}

	limit(1)
	large := strings.Repeat("x", 1<<20)
	for i := range 10 {
		if err := add(t.Context(), db, large); sqldb.ClassOf(err) != sqldb.Full {
			t.Fatalf("write %d: got %v, want an error of class Full", i, err)
		}
		if err := db.Ready(); i == 0 && sqldb.ClassOf(err) != sqldb.Full {
			t.Errorf("Ready: got %v, want an error of class Full", err)
		}
	}

	eventually(t, "ready again", func() bool { return db.Ready() == nil })
	eventually(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	check(t, db.Close())
	if len(j.begun) != 1 || len(j.ended) != 1 || j.ended[0].Count < 10 {
		t.Errorf("reported %+v and %+v, want one incident of 10 failures", j.begun, j.ended)
	}
}

// A page that cannot be read makes reads fail with class Failing, and the engine not
// ready, until a read succeeds.
func TestFaultDamagedPage(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	check(t, add(t.Context(), db, strings.Repeat("x", 1<<20)))
	check(t, db.Close())
	info, err := os.Stat(path)
	check(t, err)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	for _, place := range []int64{info.Size() / 4, info.Size() / 4 * 3} { // the table and its index
		_, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 4096), place&^4095)
		check(t, err)
	}
	check(t, file.Close())

	j := new(journal)
	db, err = Open(t.Context(), path, j.options())
	check(t, err)
	defer db.Close()
	read := func(query string) error {
		return db.ReadLoose(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
			var n int64
			return c.Row(query).Scan(&n)
		})
	}
	const damaged = "SELECT sum(length(CAST(name AS BLOB) || 'x')) FROM things"
	if err := read(damaged); sqldb.ClassOf(err) != sqldb.Failing {
		t.Errorf("got %v, want an error of class Failing", err)
	}
	if err := db.Ready(); sqldb.ClassOf(err) != sqldb.Failing {
		t.Errorf("Ready: got %v, want an error of class Failing", err)
	}
	check(t, read("SELECT count(*) FROM sqlite_schema"))
	check(t, db.Ready())
}

// The background copies nothing into a file that is gone.
func TestFaultNothingIsCopiedIntoAMovedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	check(t, add(t.Context(), db, "a"))
	check(t, os.Rename(path, path+".moved"))
	before, err := os.ReadFile(path + ".moved")
	check(t, err)

	for range 3 * checkpointCommits {
		db.checkpointer.countCommit()
	}
	eventually(t, "a checkpoint", func() bool { return len(db.checkpointer.commits) == 0 })
	time.Sleep(4 * checkpointPause)
	if err := db.Close(); err == nil {
		t.Error("Close returns no error")
	}
	after, err := os.ReadFile(path + ".moved")
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the moved file has changed")
	}
}

// Writes whose callers have left while another process holds the lock do not take up
// the queue.
func TestFaultAbandonedWritesLeaveTheQueue(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	db.writer.patience = time.Hour
	other, err := openRaw(t, path).Conn(t.Context())
	check(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	check(t, err)

	size := func() int {
		db.writer.queue.mu.Lock()
		defer db.writer.queue.mu.Unlock()
		return db.writer.queue.jobs.size
	}
	patient := make(chan error, 1)
	go func() { patient <- add(t.Context(), db, "stayed") }()
	eventually(t, "a write that waits", func() bool { return db.writer.waited() > 0 })

	ctx, cancel := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	for i := range 2 * (maxBatch + maxQueued) {
		writes.Go(func() {
			if err := add(ctx, db, fmt.Sprint("left ", i)); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		})
	}
	eventually(t, "a full queue", func() bool { return size() >= maxQueued-1 })
	cancel()
	writes.Wait()
	eventually(t, "an empty queue", func() bool { return size() == 0 })

	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	check(t, <-patient)
	wantThings(t, db, "stayed")
	check(t, db.Close())
}

// The oldest job counts, of whatever org.
func TestOldestJobOfAllOrgs(t *testing.T) {
	q := newJobQueue()
	if oldest := q.oldest(); oldest != 0 || q.since(oldest) != 0 {
		t.Errorf("empty queue: got %d", oldest)
	}
	for i, org := range []string{"b", "a", "c", "a"} {
		j := q.newJob(t.Context(), sqldb.Write{Org: org})
		j.queued = int64(100 - i)
		q.push(j)
	}
	if oldest := q.oldest(); oldest != 98 { // the second one of a came after the first
		t.Errorf("got %d, want 98", oldest)
	}
}

func TestFaultStalledEngineIsNotReady(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	db.writer.queue.begun = time.Now().Add(-time.Minute)
	release := blockWriter(t, db)
	check(t, db.Ready()) // the write has begun just now
	db.writer.oldest.Store(1)
	if err := db.Ready(); sqldb.ClassOf(err) != sqldb.Stalled || !strings.Contains(err.Error(), "waiting for 1m0s") {
		t.Errorf("writer: got %v, want that writes have been waiting for a minute", err)
	}
	release()
	eventually(t, "ready", func() bool { return db.Ready() == nil })

	eventually(t, "the disk does not respond", func() bool {
		db.monitor.checked.Store(-int64(time.Minute)) // until the monitor looks again
		return sqldb.ClassOf(db.Ready()) == sqldb.Stalled
	})
	eventually(t, "ready", func() bool { return db.Ready() == nil })
}

// If a read takes too long, the log is not restarted, and other reads go on.
func TestFaultRestartOfTheLogDoesNotWaitForLong(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	check(t, db.restartLog(time.Minute))
	check(t, db.Read(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
		if err := db.restartLog(time.Millisecond); !errors.Is(err, errTurn) {
			t.Errorf("got %v, want errTurn", err)
		}
		wantThings(t, db)
		return nil
	}))

	waits := make(chan error, 1)
	quiet := db.lanes[sqldb.Requests].pause()
	<-quiet
	go func() {
		waits <- db.ReadLoose(t.Context(), sqldb.Reader{}, func(*sqldb.Conn) error { return nil })
	}()
	select {
	case err := <-waits:
		t.Errorf("a read in the pause returned %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	db.lanes[sqldb.Requests].resume()
	check(t, <-waits)
}

func BenchmarkGuard(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	db, err := Open(b.Context(), path, Options{Hooks: noHooks})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for b.Loop() {
		if err := db.guard.check(); err != nil {
			b.Fatal(err)
		}
	}
}
