package sqlite

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// occupy takes all connections of a lane for an org, and returns a function that
// releases them one at a time.
func occupy(t *testing.T, db *DB, r sqldb.Reader) (release func()) {
	t.Helper()
	ready, next := make(chan struct{}), make(chan struct{})
	for range readers()[r.Lane] {
		go func() {
			_ = db.ReadLoose(context.Background(), r, func(*sqldb.Conn) error {
				ready <- struct{}{}
				<-next
				return nil
			})
		}()
		<-ready
	}
	return func() { next <- struct{}{} }
}

// While the readers of one lane are all busy, reads of other lanes do not wait.
func TestFaultBusyLanesDoNotDelayOthers(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	for lane := range sqldb.Lanes {
		release := occupy(t, db, sqldb.Reader{Lane: lane, Org: "acme"})
		for other := range sqldb.Lanes {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if other == lane {
				cancel()
			}
			err := db.ReadLoose(ctx, sqldb.Reader{Lane: other, Org: "acme"}, func(*sqldb.Conn) error { return nil })
			if (err == nil) == (other == lane) {
				t.Errorf("lane %d is busy, and a read of lane %d returns %v", lane, other, err)
			}
			cancel()
		}
		for range readers()[lane] {
			release()
		}
	}
}

// A read that turns out to be long begins again when it is its turn. In the meantime it
// takes no connection from others.
func TestFaultLongReadsLeaveConnections(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := occupy(t, db, sqldb.Reader{Lane: sqldb.Long, Org: "acme"})
	waiting := func() int { return db.Stats().Lanes[sqldb.Long].Waiting }

	const reads = 20
	runs, done := make(chan struct{}, 2*reads), make(chan error, reads)
	for range reads {
		go func() {
			done <- db.Read(t.Context(), sqldb.Reader{Org: "acme"}, func(c *sqldb.Conn) error {
				runs <- struct{}{}
				return c.Long()
			})
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); waiting() < reads; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d long reads wait", waiting(), reads)
		}
	}
	must.OK(t, db.Read(t.Context(), sqldb.Reader{Org: "acme"}, func(*sqldb.Conn) error { return nil }))

	for range readers()[sqldb.Long] {
		release()
	}
	for range reads {
		must.OK(t, <-done)
	}
	if len(runs) != 2*reads {
		t.Errorf("%d reads ran %d times, want each to run twice", reads, len(runs))
	}
}

// Few reads examine rows at the same time, in whichever lane they are. The others wait,
// but not those that examine no rows.
func TestFaultFewReadsExamineRowsAtOnce(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	short, long := sqldb.Reader{Org: "acme"}, sqldb.Reader{Lane: sqldb.Long, Org: "acme"}
	examine := func(ctx context.Context, r sqldb.Reader, fn func() error) error {
		return db.Read(ctx, r, func(c *sqldb.Conn) error { return c.InTurn(fn) })
	}
	nothing := func() error { return nil }

	begun, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, searches())
	for range searches() {
		go func() {
			done <- examine(t.Context(), short, func() error {
				begun <- struct{}{}
				<-release
				return nil
			})
		}()
		<-begun
	}
	for _, r := range []sqldb.Reader{short, long} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := examine(ctx, r, func() error { t.Error("too many reads examine rows"); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read of lane %d returns %v, want it to wait", r.Lane, err)
		}
		cancel()
	}
	must.OK(t, db.Read(t.Context(), short, func(*sqldb.Conn) error { return nil }))
	must.OK(t, examine(t.Context(), sqldb.Reader{Lane: sqldb.Writes}, nothing))

	close(release)
	for range searches() {
		must.OK(t, <-done)
	}
	must.OK(t, examine(t.Context(), short, nothing))
	must.OK(t, examine(t.Context(), long, nothing))
}

// An org with many waiting reads does not delay the single read of another.
func TestFaultReadersServeOrgsInTurn(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := occupy(t, db, sqldb.Reader{Org: "many"})
	waiting := func() int { return db.Stats().Lanes[sqldb.Requests].Waiting }

	order := make(chan string, 100)
	hold := make(chan struct{})
	wait := func(org string) {
		before := waiting()
		go func() {
			_ = db.ReadLoose(context.Background(), sqldb.Reader{Org: org}, func(*sqldb.Conn) error {
				order <- org
				<-hold
				return nil
			})
		}()
		for waiting() == before {
			time.Sleep(100 * time.Microsecond)
		}
	}
	for range 20 {
		wait("many")
	}
	wait("one")

	release()
	first := <-order
	release()
	if second := <-order; first == second {
		t.Errorf("the first two reads are both of org %s", first)
	}
	for range readers()[sqldb.Requests] - 2 {
		release()
	}
	close(hold)
}

// endless is a query that examines rows without end and returns none.
const endless = `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0`

func runEndless(c *sqldb.Conn) error {
	return c.EachLong(func(sqldb.Scanner) error { return nil }, endless)
}

// A query is interrupted when its caller gives up, and the connection stays usable.
func TestFaultReadEndsWithItsContext(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	for range 2 * readers()[sqldb.Requests] {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Read(ctx, sqldb.Reader{}, func(c *sqldb.Conn) error {
			time.AfterFunc(10*time.Millisecond, cancel)
			return runEndless(c)
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	}
	wantThings(t, db)
}

// Reads for callers have a time limit, which includes the wait for a connection.
func TestFaultReadsHaveATimeLimit(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	for lane := range db.Readers.MaxRead {
		db.Readers.MaxRead[lane] = 20 * time.Millisecond
	}
	for lane := range sqldb.Lanes {
		reader := sqldb.Reader{Lane: lane, Org: "acme"}
		if err := db.Read(t.Context(), reader, runEndless); sqldb.ClassOf(err) != sqldb.Slow {
			t.Errorf("lane %d: an endless read returns %v, want an error of class Slow", lane, err)
		}

		release := occupy(t, db, sqldb.Reader{Lane: lane})
		err := db.Read(t.Context(), reader, func(*sqldb.Conn) error { return nil })
		if sqldb.ClassOf(err) != sqldb.Slow {
			t.Errorf("lane %d: a read that waits too long returns %v, want an error of class Slow", lane, err)
		}
		for range readers()[lane] {
			release()
		}
	}

	err := db.Read(t.Context(), sqldb.Reader{Lane: sqldb.Writes}, func(c *sqldb.Conn) error {
		time.Sleep(2 * db.Readers.MaxRead[sqldb.Writes])
		return c.Each(func(sqldb.Scanner) error { return nil }, "SELECT 1")
	})
	if err != nil {
		t.Errorf("a read of background work returns %v, want no limit", err)
	}
}

// The queries after the end of a context fail, without running.
func TestReadStopsBetweenQueries(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	must.OK(t, db.Write(t.Context(), single(func(c *sqldb.Conn) error {
		return errors.Join(insert(c, "a"), insert(c, "b"))
	})))

	ctx, cancel := context.WithCancel(t.Context())
	rows := 0
	err := db.Read(ctx, sqldb.Reader{}, func(c *sqldb.Conn) error {
		var n int
		each := c.Each(func(sqldb.Scanner) error {
			rows++
			cancel()
			return nil
		}, "SELECT id FROM expressions")
		if each == nil || c.Each(func(sqldb.Scanner) error { return nil }, "SELECT 1") == nil ||
			c.Row("SELECT 1").Scan(&n) == nil {
			t.Error("a query runs after the context has ended")
		}
		return each
	})
	if !errors.Is(err, context.Canceled) || rows != 1 {
		t.Errorf("got %v after %d rows, want context.Canceled after 1", err, rows)
	}
}

// An org that floods the writer does not delay the write of another.
func TestFaultWritesOfOrgsTakeTurns(t *testing.T) {
	db := open(t, newPath(t), noHooks)
	release := blockWriter(t, db)
	var order []string
	write := func(org string) sqldb.Write {
		return sqldb.Write{Org: org, Do: func(*sqldb.Conn) error {
			order = append(order, org)
			return nil
		}}
	}

	flood := 0
	for db.TryWrite(write("many")) {
		flood++
	}
	if flood != engine.MaxQueued {
		t.Errorf("the queue takes %d writes of an org, want %d", flood, engine.MaxQueued)
	}
	waiting, cancel := context.WithCancel(t.Context())
	blocked := make(chan error, 1)
	go func() { blocked <- db.Write(waiting, write("many")) }()
	last := enqueue(t.Context(), db, write("one"))
	release()
	must.OK(t, <-last)
	must.OK(t, <-blocked)
	cancel()

	// The write of the other org is in the first batch, with all but one of the flood.
	i := slices.Index(order, "one")
	if i != engine.MaxBatch-1 {
		t.Errorf("the write of the other org ran as number %d, want %d", i, engine.MaxBatch-1)
	}
}
