package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// namesIn returns the names of the files in the folder of a path.
func namesIn(t *testing.T, path string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

// TestBackupWhileWriting writes all the time. Each copy has every row that was written before
// it began, all rows before the last one it has, and nothing is left of it but the file.
func TestBackupWhileWriting(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	var writers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer writers.Wait()
	defer stop()
	written := make(chan int) // the last row on disk
	writers.Go(func() {
		for i := 1; ; i++ {
			err := db.Write(context.WithoutCancel(ctx), single(func(c *sqldb.Conn) error {
				return insert(c, fmt.Sprintf("%d %s", i, strings.Repeat("x", 20_000)))
			}))
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case written <- i:
			case <-ctx.Done():
				return
			default:
			}
		}
	})

	for range 5 {
		before := <-written
		path := newPath(t)
		size, err := db.Backup(t.Context(), path)
		must.OK(t, err)
		if sizeOf(path) != size || namesIn(t, path) != filepath.Base(path) {
			t.Errorf("got a size of %d for %d bytes, and the files %s", size, sizeOf(path), namesIn(t, path))
		}
		info := must.Get(os.Stat(path))(t)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("the copy has the mode %v", info.Mode())
		}

		var n, last int
		row := openRaw(t, path).QueryRow("SELECT count(*), max(id) FROM expressions")
		must.OK(t, row.Scan(&n, &last))
		if n != last || n < before {
			t.Errorf("the copy has %d rows, the last %d; %d were written before it began", n, last, before)
		}
	}
}

func TestBackupRefuses(t *testing.T) {
	source := newPath(t)
	db := open(t, source, noHooks)
	addOrgs(t, db, 0, 10, 100_000)
	must.OK(t, db.Close())
	foreign := newPath(t)
	_, err := openRaw(t, foreign).Exec("CREATE TABLE other (id INTEGER)")
	must.OK(t, err)
	text := newPath(t)
	must.OK(t, os.WriteFile(text, []byte(strings.Repeat("no database ", 1000)), 0o600))
	whole := must.Read(t, source)
	short := newPath(t)
	must.OK(t, os.WriteFile(short, whole[:len(whole)/2/pageSize*pageSize], 0o600))
	empty := newPath(t)
	must.OK(t, os.WriteFile(empty, nil, 0o600))

	cases := []struct {
		name, from string
		existing   string // what the folder of the copy has
		want       string
	}{
		{"a missing database", filepath.Join(t.TempDir(), "ledger.db"), "", "no such file or directory"},
		{"an empty file", empty, "", "not a database of ledgerd"},
		{"a database of another program", foreign, "", "not a database of ledgerd"},
		{"a file that is no database", text, "", "file is not a database"},
		{"a truncated database", short, "", "malformed"},
		{"a file of that name", source, "copy.db", "copy.db exists already, and is not replaced"},
		{"the log of a database of that name", source, "copy.db-wal", "copy.db-wal exists already"},
		{"the journal of a database of that name", source, "copy.db-journal", "copy.db-journal exists already"},
	}
	for _, c := range cases {
		for _, still := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, still %v", c.name, still), func(t *testing.T) {
				to := filepath.Join(t.TempDir(), "copy.db")
				if c.existing != "" {
					must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(to), c.existing), []byte("kept"), 0o600))
				}
				_, err := Backup{From: c.from, To: to, Still: still}.Run(t.Context())
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got error %v, want %q", err, c.want)
				}
				if names := namesIn(t, to); names != c.existing {
					t.Errorf("the folder has %q, want %q", names, c.existing)
				}
			})
		}
	}
}

func TestBackupIsCancelled(t *testing.T) {
	t.Parallel()
	db := open(t, newPath(t), noHooks)
	addOrgs(t, db, 0, 100, 100_000)
	to := filepath.Join(t.TempDir(), "copy.db")
	ctx, cancel := context.WithCancel(t.Context())
	b := Backup{From: db.path, To: to, Progress: func(done, total int64) { cancel() }}
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}

	refused := errors.New("refused")
	b = Backup{From: db.path, To: to, Verify: func(string) error { return refused }}
	if _, err := b.Run(t.Context()); !errors.Is(err, refused) {
		t.Errorf("got error %v, want %v", err, refused)
	}
	if names := namesIn(t, to); names != "" {
		t.Errorf("the folder has %q, want nothing", names)
	}
}

// TestStillBackupWritesNothing copies a file in a folder that nobody writes to.
func TestStillBackupWritesNothing(t *testing.T) {
	from := newPath(t)
	must.OK(t, open(t, from, noHooks).Close())
	before, err := os.Stat(filepath.Dir(from))
	must.OK(t, err)
	_, err = Backup{From: from, To: newPath(t), Still: true}.Run(t.Context())
	must.OK(t, err)
	after := must.Get(os.Stat(filepath.Dir(from)))(t)
	if !after.ModTime().Equal(before.ModTime()) {
		t.Error("the folder of the file was written to")
	}

	b := Backup{From: from, To: newPath(t), Still: true, Progress: func(int64, int64) {
		must.OK(t, os.WriteFile(from, []byte("changed"), 0o600))
	}}
	if _, err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was changed at") {
		t.Errorf("got error %v of a file that was changed", err)
	}
}

// TestFaultNoIncidentDuringBackup writes more than the log may hold while a backup reads it.
func TestFaultNoIncidentDuringBackup(t *testing.T) {
	t.Parallel()
	j := new(journal)
	db := openWith(t, newPath(t), j.options())
	addOrgs(t, db, 0, 1, 1000)
	db.checkpointer.backups.Add(1)
	snapshot := openRaw(t, db.path)
	conn, err := snapshot.Conn(t.Context())
	must.OK(t, err)
	must.OK(t, beginSnapshot(t.Context(), conn))

	addOrgs(t, db, 1, 250, 200_000) // 100 MB
	if !db.checkpointer.next.IsZero() {
		t.Error("the log was to be restarted during a backup")
	}
	must.OK(t, errors.Join(conn.Close(), snapshot.Close()))
	db.checkpointer.backups.Add(-1)
	must.Wait(t, "the log is restarted", func() bool {
		addOrgs(t, db, int(time.Now().UnixNano()), 1, 100)
		return sizeOf(db.path+"-wal") < 80<<20
	})
	if begun, _ := j.counts(); begun > 0 {
		t.Error("an incident was reported")
	}
}

// TestExternalCheckpoints leaves the log to another process.
func TestExternalCheckpoints(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db, err := Open(t.Context(), path, Options{Hooks: noHooks, ExternalCheckpoints: true})
	must.OK(t, err)
	before := sizeOf(path)
	addOrgs(t, db, 0, 250, 200_000) // 100 MB
	if size := sizeOf(path); size != before {
		t.Errorf("the file has grown from %d to %d bytes", before, size)
	}
	if size := sizeOf(path + "-wal"); size < 100<<20 {
		t.Errorf("the log has %d bytes", size)
	}

	var busy, frames, copied int64
	must.OK(t, openRaw(t, path).QueryRow("PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied))
	if busy != 0 || sizeOf(path+"-wal") != 0 {
		t.Errorf("a checkpoint of another process got busy %d, and left %d bytes", busy, sizeOf(path+"-wal"))
	}
	addOrgs(t, db, 1000, 1, 100)
	must.OK(t, db.Close())
}
