package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// While another process holds the write lock, callers can give up, each write fails
// after a while, later ones fail at once, and the engine is not ready. When the lock is
// free, it works again.
func TestFaultLockIsHeldForLong(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	path := newPath(t)
	j := new(journal)
	db := openWith(t, path, j.options())
	db.Writer.Patience = time.Second
	other, err := openRaw(t, path).Conn(t.Context())
	must.OK(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must.OK(t, err)

	patient := make(chan error, 1)
	go func() { patient <- add(t.Context(), db, "patient") }()
	must.Wait(t, "the writer waits", func() bool { return db.Writer.Waited() > 0 })
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
	must.OK(t, err)
	must.Wait(t, "ready again", func() bool { return db.Ready() == nil })
	must.OK(t, add(t.Context(), db, "after"))
	must.Wait(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	wantThings(t, db, "after")
	must.OK(t, db.Close())
	if len(j.begun) != 1 || j.begun[0].Kind != sqldb.WriteIncident {
		t.Errorf("reported %+v, want one incident", j.begun)
	}
}

// Close does not wait for a lock that another process holds.
func TestFaultCloseWhileLocked(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	db.Writer.Patience = 100 * time.Millisecond
	other, err := openRaw(t, path).Conn(t.Context())
	must.OK(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must.OK(t, err)
	if err := add(t.Context(), db, "a"); sqldb.ClassOf(err) != sqldb.Locked {
		t.Errorf("got %v, want an error of class Locked", err)
	}
	must.OK(t, db.Close())
}

// While the disk is full, the engine is not ready. It detects without a request that
// writing works again.
func TestFaultFullDisk(t *testing.T) {
	testenv.From(t, testenv.Push, "takes seconds")
	j := new(journal)
	db := openWith(t, newPath(t), j.options())
	limit := func(pages int) {
		must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error {
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

	must.Wait(t, "ready again", func() bool { return db.Ready() == nil })
	must.Wait(t, "the end is reported", func() bool { _, n := j.counts(); return n == 1 })
	must.OK(t, db.Close())
	if len(j.begun) != 1 || len(j.ended) != 1 || j.ended[0].Count < 10 {
		t.Errorf("reported %+v and %+v, want one incident of 10 failures", j.begun, j.ended)
	}
}

// A page that cannot be read makes reads fail with class Failing, and the engine not
// ready, until a read succeeds.
func TestFaultDamagedPage(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	must.OK(t, add(t.Context(), db, strings.Repeat("x", 1<<20)))
	must.OK(t, db.Close())
	info := must.Get(os.Stat(path))(t)
	file := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	for _, place := range []int64{info.Size() / 4, info.Size() / 4 * 3} { // the table and its index
		_, err := file.WriteAt(bytes.Repeat([]byte{0xff}, 4096), place&^4095)
		must.OK(t, err)
	}
	must.OK(t, file.Close())

	j := new(journal)
	db, err := Open(t.Context(), path, j.options())
	must.OK(t, err)
	defer db.Close()
	read := func(query string) error {
		return db.ReadLoose(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
			var n int64
			return c.Row(query).Scan(&n)
		})
	}
	const damaged = "SELECT sum(length(CAST(text AS BLOB) || 'x')) FROM expressions"
	if err := read(damaged); sqldb.ClassOf(err) != sqldb.Failing {
		t.Errorf("got %v, want an error of class Failing", err)
	}
	if err := db.Ready(); sqldb.ClassOf(err) != sqldb.Failing {
		t.Errorf("Ready: got %v, want an error of class Failing", err)
	}
	must.OK(t, read("SELECT count(*) FROM sqlite_schema"))
	must.OK(t, db.Ready())
}

// The background copies nothing into a file that is gone.
func TestFaultNothingIsCopiedIntoAMovedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not move open files")
	}
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	must.OK(t, add(t.Context(), db, "a"))
	must.OK(t, os.Rename(path, path+".moved"))
	before := must.Read(t, path+".moved")

	for range 3 * checkpointCommits {
		db.checkpointer.countCommit()
	}
	must.Wait(t, "a checkpoint", func() bool { return len(db.checkpointer.commits) == 0 })
	time.Sleep(4 * checkpointPause)
	if err := db.Close(); err == nil {
		t.Error("Close returns no error")
	}
	after := must.Read(t, path+".moved")
	if !bytes.Equal(before, after) {
		t.Error("the moved file has changed")
	}
}

// Writes whose callers have left while another process holds the lock do not take up
// the queue.
func TestFaultAbandonedWritesLeaveTheQueue(t *testing.T) {
	path := newPath(t)
	db := openWith(t, path, Options{Hooks: noHooks})
	db.Writer.Patience = time.Hour
	other, err := openRaw(t, path).Conn(t.Context())
	must.OK(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must.OK(t, err)

	size := db.Writer.Queued
	patient := make(chan error, 1)
	go func() { patient <- add(t.Context(), db, "stayed") }()
	must.Wait(t, "a write that waits", func() bool { return db.Writer.Waited() > 0 })

	ctx, cancel := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	for i := range 2 * (engine.MaxBatch + engine.MaxQueued) {
		writes.Go(func() {
			if err := add(ctx, db, fmt.Sprint("left ", i)); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		})
	}
	must.Wait(t, "a full queue", func() bool { return size() >= engine.MaxQueued-1 })
	cancel()
	writes.Wait()
	must.Wait(t, "an empty queue", func() bool { return size() == 0 })

	_, err = other.ExecContext(t.Context(), "ROLLBACK")
	must.OK(t, err)
	must.OK(t, <-patient)
	wantThings(t, db, "stayed")
	must.OK(t, db.Close())
}

func TestFaultStalledEngineIsNotReady(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := blockWriter(t, db)
	must.OK(t, db.Ready()) // the write has begun just now
	db.Writer.StalledAfter = 0
	if err := db.Ready(); sqldb.ClassOf(err) != sqldb.Stalled || !strings.Contains(err.Error(), "have been waiting for") {
		t.Errorf("writer: got %v, want that writes have been waiting", err)
	}
	release()
	must.Wait(t, "ready", func() bool { return db.Ready() == nil })
}

// If a read takes too long, the log is not restarted, and other reads go on.
func TestFaultRestartOfTheLogDoesNotWaitForLong(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	must.OK(t, db.restartLog(time.Minute))
	must.OK(t, db.Read(t.Context(), sqldb.Reader{}, func(c *sqldb.Conn) error {
		if err := db.restartLog(time.Millisecond); !errors.Is(err, errTurn) {
			t.Errorf("got %v, want errTurn", err)
		}
		wantThings(t, db)
		return nil
	}))

	waits := make(chan error, 1)
	quiet := db.Readers.Lanes[sqldb.Requests].Pause()
	<-quiet
	go func() {
		waits <- db.ReadLoose(t.Context(), sqldb.Reader{}, func(*sqldb.Conn) error { return nil })
	}()
	select {
	case err := <-waits:
		t.Errorf("a read in the pause returned %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	db.Readers.Lanes[sqldb.Requests].Resume()
	must.OK(t, <-waits)
}
