package sqlite

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// sizeOf returns the size of a file in bytes.
func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// addOrgs adds n orgs, each in its own transaction and with a name of size bytes.
func addOrgs(t *testing.T, db *DB, from, n, size int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		err := db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
			_, err := c.Exec("INSERT INTO orgs (name, created_at) VALUES (?, 1)", fmt.Sprintf("%0*d", size, i))
			return err
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckpointsRunInTheBackground(t *testing.T) {
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks, CheckpointFailed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	addOrgs(t, db, 0, 100, 100_000) // 20 MB with the index, too little for a checkpoint by the writer
	for i := range 250 {
		if sizeOf(t, path) >= 8<<20 {
			return
		}
		addOrgs(t, db, 100+i, 1, 100) // small commits that trigger the checkpointer
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the file has %d bytes after 10 MB were written, want 8 MB or more", sizeOf(t, path))
}

func TestLogIsBoundedUnderConstantLoad(t *testing.T) {
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	addOrgs(t, db, 0, 1500, 100_000) // 150 MB plus the index
	if size := sizeOf(t, path+"-wal"); size > 48<<20 {
		t.Errorf("the log has %d bytes, want at most 48 MB", size)
	}
}

func TestFailingCheckpointsAreReportedOnce(t *testing.T) {
	c, err := sqldb.Connect(t.Context(), openRaw(t, t.TempDir()+"/ledger.db"), &dialect)
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 10)
	k := startCheckpointer(c, func(err error) { reported <- err })
	c.Close() // makes every checkpoint fail
	for range 5 * checkpointCommits {
		k.countCommit()
		time.Sleep(5 * time.Millisecond)
	}
	if err := k.close(); err == nil {
		t.Error("closing a closed connection returns no error")
	}
	if err := <-reported; err == nil || errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("got error %v, want that of the checkpoint", err)
	}
	if len(reported) > 0 {
		t.Errorf("%d more errors were reported, want none", len(reported))
	}
}
