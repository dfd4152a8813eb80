package sqlite

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// addOrgs adds n orgs, each in its own transaction and with a name of size bytes.
func addOrgs(t testing.TB, db *DB, from, n, size int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		err := db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
			_, err := c.Exec("INSERT INTO orgs (name, created_at) VALUES (?, 1)", fmt.Sprintf("%0*d", size, i))
			return err
		}})
		must.OK(t, err)
	}
}

func TestCheckpointsRunInTheBackground(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks, Began: func(incident sqldb.Incident) { t.Error(incident) }})
	must.OK(t, err)
	defer db.Close()
	addOrgs(t, db, 0, 100, 100_000) // 20 MB with the index, too little for a checkpoint by the writer
	for i := range 250 {
		if sizeOf(path) >= 8<<20 {
			return
		}
		addOrgs(t, db, 100+i, 1, 100) // small commits that trigger the checkpointer
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the file has %d bytes after 10 MB were written, want 8 MB or more", sizeOf(path))
}

func TestLogIsBoundedUnderConstantLoad(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	path := t.TempDir() + "/ledger.db"
	db, err := Open(t.Context(), path, Options{Hooks: noHooks})
	must.OK(t, err)
	defer db.Close()
	addOrgs(t, db, 0, 1500, 100_000) // 150 MB plus the index
	if size := sizeOf(path + "-wal"); size > 48<<20 {
		t.Errorf("the log has %d bytes, want at most 48 MB", size)
	}
}

func TestFailingCheckpointsAreReportedOnce(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path, noHooks)
	c, err := Connect(t.Context(), openRaw(t, path))
	must.OK(t, err)
	var begun []sqldb.Incident
	h := engine.NewHealth(func(t sqldb.Incident) { begun = append(begun, t) }, nil, db.help)
	k := newCheckpointer(c, db.guard, h, db.restartLog)
	k.start()
	c.Close() // makes every checkpoint fail
	for range 5 * checkpointCommits {
		k.countCommit()
		time.Sleep(5 * time.Millisecond)
	}
	k.stopRunning()

	h.Report(time.Now())
	if len(begun) != 1 || begun[0].Kind != sqldb.CheckpointIncident || begun[0].Count < 2 {
		t.Errorf("got incidents %v, want one of several failed checkpoints", begun)
	}
}

// holdSnapshots reads in transactions that overlap, so that there is always a reader,
// until stop is called.
func holdSnapshots(t *testing.T, read func(func()) error) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := read(func() { time.Sleep(20 * time.Millisecond) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() { close(done); readers.Wait() }
}

// SQLite alone would never restart the log if there are always readers.
func TestFaultLogIsBoundedUnderReaders(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	if testing.Short() {
		t.Skip("writes 150 MB")
	}
	path := newPath(t)
	db := open(t, path, noHooks)
	stop := holdSnapshots(t, func(wait func()) error {
		return db.Read(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
			var n int64
			defer wait()
			return c.Row("SELECT count(*) FROM orgs").Scan(&n)
		})
	})
	defer stop()

	for i := range 15 {
		addOrgs(t, db, i*50, 50, 100_000) // 10 MB
		if size := sizeOf(path + "-wal"); size > 80<<20 {
			t.Fatalf("the log has %d bytes after %d MB were written, want at most 80 MB", size, (i+1)*10)
		}
	}
}

// A transaction of another process that keeps the log from being restarted is reported
// once, and so is its end.
func TestFaultForeignTransactionIsReported(t *testing.T) {
	testenv.From(t, testenv.Push, "waits for the report")
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	other, err := openRaw(t, path).Conn(t.Context())
	must.OK(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN; SELECT count(*) FROM orgs")
	must.OK(t, err)

	addOrgs(t, db, 0, 200, 100_000) // 40 MB
	must.Wait(t, "the transaction is reported", func() bool {
		addOrgs(t, db, int(time.Now().UnixNano()), 1, 100)
		n, _ := j.counts()
		return n > 0
	})
	must.OK(t, db.Ready()) // it is no incident yet

	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	must.OK(t, err)
	must.Wait(t, "the end is reported", func() bool { _, n := j.counts(); return n > 0 })
	must.OK(t, db.Close())
	if len(j.begun) != 1 || j.begun[0].Kind != sqldb.WALIncident || !strings.Contains(j.begun[0].Err.Error(), " MB") {
		t.Errorf("reported %+v, want one incident with the size", j.begun)
	}
}
