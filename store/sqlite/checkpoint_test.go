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

// addOrgs writes n transactions of an org each, whose name has size bytes.
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

func TestTheLogIsCopiedIntoTheFileInTheBackground(t *testing.T) {
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks, CheckpointFailed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	addOrgs(t, db, 0, 100, 100_000) // with its index 20 MB: the writer copies none of it
	for i := range 250 {
		if sizeOf(t, path) >= 8<<20 {
			return
		}
		addOrgs(t, db, 100+i, 1, 100) // small commits that drive the checkpointer
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the file has %d bytes after 10 MB were written", sizeOf(t, path))
}

func TestTheLogStaysBoundedUnderAConstantLoad(t *testing.T) {
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	addOrgs(t, db, 0, 1500, 100_000) // 150 MB and their index
	if size := sizeOf(t, path+"-wal"); size > 48<<20 {
		t.Errorf("the log has %d bytes", size)
	}
}

func TestAFailingCheckpointIsReportedOnce(t *testing.T) {
	c, err := sqldb.Connect(t.Context(), raw(t, t.TempDir()+"/ledger.db"), &dialect)
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 10)
	k := startCheckpointer(c, func(err error) { reported <- err })
	c.Close() // so that each fails
	for range 5 * checkpointCommits {
		k.note()
		time.Sleep(5 * time.Millisecond)
	}
	if err := k.close(); err == nil {
		t.Error("the connection was closed, and closing it again is no error")
	}
	if err := <-reported; err == nil || errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("reported is %v", err)
	}
	if len(reported) > 0 {
		t.Errorf("it was reported %d times more", len(reported))
	}
}
