package backup_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/backup"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store"
)

// newBackup writes a backup of a ledger with the org acme.
func newBackup(t *testing.T) string {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), store.Options{})
	must.OK(t, err)
	_, err = db.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	file := filepath.Join(t.TempDir(), "backup.db")
	_, err = db.Backup(t.Context(), file)
	must.OK(t, err)
	must.OK(t, db.Close())
	return file
}

// change runs a statement on a file.
func change(t *testing.T, file, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	must.OK(t, err)
	_, err = db.Exec(statement)
	must.OK(t, errors.Join(err, db.Close()))
}

// TestRestoreRefuses restores what must not be restored. The folder of the database stays as it
// was, but for the file of the lock.
func TestRestoreRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change string // of the backup
		quick  bool
		exists string // next to the database
		want   string
	}{
		{"over a database", "", true, "ledger.db", "ledger.db exists already, and is not replaced"},
		{"over the log of a database", "", true, "ledger.db-wal", "ledger.db-wal exists already"},
		{"a newer schema", "PRAGMA user_version = 999", true, "", "schema version 999 is too new"},
		{"no schema", "PRAGMA user_version = 0", true, "", "the check has found problems"},
		{"a database of another program", "PRAGMA application_id = 1", true, "", "not a ledgerd database"},
		{"a trigger", "CREATE TRIGGER raise AFTER UPDATE ON tokens BEGIN UPDATE tokens SET permission = 4; END", false, "",
			"the check has found problems (1)"},
		{"a trigger, without a check", "CREATE TRIGGER raise AFTER INSERT ON orgs BEGIN DELETE FROM tokens; END", true, "",
			"the check has found problems (1)"},
		{"a view", "CREATE VIEW shown AS SELECT * FROM tokens", true, "", "the check has found problems (1)"},
		{"a backup that was changed", "UPDATE orgs SET next_seq = 7", false, "", "the check has found problems (1)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := backup.Restore{File: newBackup(t), Database: filepath.Join(t.TempDir(), "ledger.db"), Quick: c.quick}
			if c.change != "" {
				change(t, r.File, c.change)
			}
			if c.exists != "" {
				must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(r.Database), c.exists), []byte("kept"), 0o600))
			}
			if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}

			entries := must.Get(os.ReadDir(filepath.Dir(r.Database)))(t)
			for _, entry := range entries {
				if name := entry.Name(); name != c.exists && name != "ledger.db.lock" {
					t.Errorf("the folder has %s", name)
				}
			}
		})
	}
}

// TestScheduleKeepsTheNewest writes a backup an hour, over two starts, and keeps three of them.
func TestScheduleKeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		for _, other := range []string{"other-20200101T000000Z.db", "ledger-1.db", "ledger-20200101T000000Z.txt"} {
			must.OK(t, os.WriteFile(filepath.Join(folder, other), nil, 0o600))
		}
		var writes, failing atomic.Int64
		var log bytes.Buffer
		start := func() *backup.Schedule {
			return &backup.Schedule{
				Folder: folder, Name: "ledger", Every: time.Hour, Keep: 3, Now: time.Now,
				Log: slog.New(slog.NewTextHandler(&log, nil)),
				Write: func(_ context.Context, path string) (int64, error) {
					if writes.Add(1); failing.Load() > 0 {
						return 0, errors.New("no space left")
					}
					return 4, os.WriteFile(path, []byte("data"), 0o600)
				},
			}
		}
		run := func(s *backup.Schedule, d time.Duration) {
			ctx, stop := context.WithTimeout(t.Context(), d)
			defer stop()
			s.Run(ctx)
		}
		wantWrites := func(want int64) {
			t.Helper()
			if got := writes.Swap(0); got != want {
				t.Errorf("%d backups were written, want %d", got, want)
			}
		}

		run(start(), 90*time.Minute) // at 0:00 and 1:00
		wantWrites(2)
		s := start()
		run(s, 20*time.Minute) // until 1:50
		wantWrites(0)
		if status := s.Status(); time.Since(status.Last) != 50*time.Minute || status.Bytes != 4 {
			t.Errorf("got status %+v 50 minutes after a backup of 4 bytes", status)
		}
		run(s, 3*time.Hour) // at 2:00, 3:00 and 4:00
		wantWrites(3)
		wantBackups(t, folder, 3)

		failing.Store(1)
		s = start()
		run(s, 55*time.Minute) // until 5:45; at 5:00, and every ten minutes from then on
		wantWrites(5)
		if status := s.Status(); status.Failures != 5 || time.Since(status.Last) < 100*time.Minute {
			t.Errorf("got status %+v after 5 failures", status)
		}
		if !strings.Contains(log.String(), "backup failed") || !strings.Contains(log.String(), "no space left") {
			t.Errorf("the log has %s", log.String())
		}
		wantBackups(t, folder, 3)
	})
}

// wantBackups checks how many backups a folder has, next to three other files.
func wantBackups(t *testing.T, folder string, want int) {
	t.Helper()
	entries := must.Get(os.ReadDir(folder))(t)
	if len(entries) != want+3 {
		t.Errorf("the folder has %v, want %d backups and three other files", entries, want)
	}
}

// TestScheduleWithABackupFromTheFuture keeps the backup that it writes.
func TestScheduleWithABackupFromTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(folder, "ledger-20990101T000000Z.db"), nil, 0o600))
		s := backup.Schedule{
			Folder: folder, Name: "ledger", Every: time.Hour, Keep: 1, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Write: func(_ context.Context, path string) (int64, error) { return 0, os.WriteFile(path, nil, 0o600) },
		}
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Minute)
		defer stop()
		s.Run(ctx)
		if _, err := os.Stat(filepath.Join(folder, "ledger-20000101T010000Z.db")); err != nil {
			t.Error(err)
		}
		entries := must.Get(os.ReadDir(folder))(t)
		if len(entries) != 2 {
			t.Errorf("the folder has %v, want the newest backup and that from the future", entries)
		}
	})
}
