// Package sqlite is the database engine that stores the ledger in one SQLite file.
// One goroutine writes and commits many writes per transaction. A pool of
// connections reads.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// readers returns the number of connections of each lane.
func readers() [sqldb.Lanes]int {
	return [sqldb.Lanes]int{sqldb.Requests: 8, sqldb.Writes: 4, sqldb.Checks: 2, sqldb.Long: searches()}
}

// searches returns how many reads may examine rows at the same time, which takes only CPU
// time: one for two CPUs. With more, an attestation waits for a CPU several times. All
// connections share the locks of SQLite's allocator and page cache, so it also waits for
// reads that have a lock but no CPU.
func searches() int { return min(max(1, runtime.GOMAXPROCS(0)/2), 8) }

// maxRead is the maximum time that a read for a caller waits and runs, by lane. Background
// work, whose reads have no org, has no limit in the lane Writes.
var maxRead = [sqldb.Lanes]time.Duration{
	sqldb.Requests: 5 * time.Second, sqldb.Long: 5 * time.Second, sqldb.Checks: 5 * time.Second,
	sqldb.Writes: 10 * time.Second,
}

// A DB is an open SQLite file. It implements sqldb.Engine.
type DB struct {
	path         string
	lock         *Lock // nil unless Options.Serve is set
	guard        *guard
	health       *health
	writeDB      *sql.DB
	readDB       *sql.DB
	writer       *writer
	checkpointer *checkpointer
	monitor      *monitor
	lanes        [sqldb.Lanes]*pool
	maxRead      [sqldb.Lanes]time.Duration
	still        fs.FileInfo   // of a file that OpenReadOnly takes for one that does not change
	closing      chan struct{} // closed by Close
}

var _ sqldb.Engine = (*DB)(nil)

// Open opens the database file at path. It creates the file if it does not exist,
// and migrates its schema to the version of this release.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	db := &DB{path: path, maxRead: maxRead, closing: make(chan struct{})}
	db.health = newHealth(o, db.help)
	for lane := range db.lanes {
		db.lanes[lane] = newPool(db.closing)
	}
	if err := db.open(ctx, path, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context, path string, o Options) (err error) {
	if o.Serve {
		if db.lock, err = TakeLock(path); err != nil {
			return err
		}
	}
	if err := checkLog(path); err != nil {
		return err
	}
	if err := createPrivate(path); err != nil {
		return err
	}

	if db.writeDB, err = openFile(path, writerPragmas(o)); err != nil {
		return err
	}
	c, err := sqldb.Connect(ctx, db.writeDB, &dialect)
	if err != nil {
		return err
	}
	if err := migrate(c, path, o); err != nil {
		return errors.Join(err, c.Close())
	}
	if db.guard, err = newGuard(path); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := db.startWriter(ctx, c, o); err != nil {
		return err
	}
	db.monitor = startMonitor(db.guard, db.health, db.writer)

	if db.readDB, err = openFile(path, readerPragmas); err != nil {
		return err
	}
	turns := make(sqldb.Turns, searches())
	for lane, n := range readers() {
		for range n {
			c, err := sqldb.Connect(ctx, db.readDB, &dialect)
			if err != nil {
				return err
			}
			switch sqldb.Lane(lane) {
			case sqldb.Requests:
				c.KeepShort()
				c.TakeTurns(turns)
			case sqldb.Long:
				c.TakeTurns(turns)
			}
			db.lanes[lane].idle = append(db.lanes[lane].idle, c)
		}
	}
	return nil
}

// startWriter starts the writer on c, and the checkpointer on a new connection.
func (db *DB) startWriter(ctx context.Context, c *sqldb.Conn, o Options) error {
	checkpoints, err := sqldb.Connect(ctx, db.writeDB, &dialect)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	db.checkpointer = newCheckpointer(checkpoints, db.guard, db.health, db.restartLog)
	if !o.ExternalCheckpoints {
		db.checkpointer.start()
	}

	// The writer itself retries, so that writes do not wait for others that wait.
	if err := c.Run("PRAGMA busy_timeout = 100"); err != nil {
		return errors.Join(err, c.Close())
	}
	hooks := o.Hooks
	hooks.AfterCommit = func() {
		o.Hooks.AfterCommit()
		db.checkpointer.countCommit()
	}
	db.writer = newWriter(c, hooks, db.guard, db.health)
	return nil
}

// restartLog has the writer restart the log; see the function of that name.
func (db *DB) restartLog(wait time.Duration) error {
	return restartLog(db.lanes[:], db.closing, db.writer, wait)
}

// help is what the administrator can do about an incident.
func (db *DB) help(kind sqldb.IncidentKind) string {
	switch kind {
	case sqldb.FileIncident:
		return db.guard.help()
	case sqldb.ReadIncident:
		return "look for errors of the disk in the system log: to SQLite, a block that cannot be read is a malformed file"
	case sqldb.WALIncident:
		return "end the transaction; 'fuser " + db.path + "' lists the processes that have the file open"
	}
	return ""
}

// Close implements sqldb.Engine.
func (db *DB) Close() error {
	var errs []error
	close(db.closing)
	if db.checkpointer != nil {
		db.checkpointer.stopRunning()
	}
	if db.writer != nil {
		db.writer.close()
	}
	if db.monitor != nil {
		db.monitor.close()
	}

	// The connections that are open keep the data of a file that is gone.
	if db.writer != nil {
		if err := db.guard.check(); err != nil {
			errs = append(errs, rescue(db.writer.conn, db.path, err))
			if !db.guard.canClose() {
				return errors.Join(append(errs, db.release())...)
			}
		}
	}
	return errors.Join(append(errs, db.closeConnections(), db.release())...)
}

func (db *DB) closeConnections() error {
	var errs []error
	if db.checkpointer != nil {
		errs = append(errs, db.checkpointer.conn.Close())
	}
	for _, lane := range db.lanes {
		errs = append(errs, lane.close())
	}
	if db.readDB != nil {
		errs = append(errs, db.readDB.Close())
	}

	if db.writer != nil {
		errs = append(errs, db.writer.conn.Close())
	}
	if db.writeDB != nil {
		errs = append(errs, db.writeDB.Close())
	}
	return errors.Join(errs...)
}

// release releases the lock of the server.
func (db *DB) release() error {
	if db.lock == nil {
		return nil
	}
	return db.lock.Release()
}

// Ready implements sqldb.Engine.
func (db *DB) Ready() error {
	select {
	case <-db.closing:
		return sqldb.ErrClosed
	default:
	}
	if db.monitor == nil {
		return nil // read only
	}
	return db.monitor.ready()
}

// Stats implements sqldb.Engine.
func (db *DB) Stats() (s sqldb.Stats) {
	s.FileBytes = sizeOf(db.path)
	if db.guard != nil {
		s.LogBytes = sizeOf(db.guard.files[1].path)
	}
	for lane := range db.lanes {
		s.Lanes[lane] = db.lanes[lane].stats()
	}
	return s
}

// sizeOf returns the size of a file in bytes; 0 if there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// Read implements sqldb.Engine.
func (db *DB) Read(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return db.read(ctx, r, func(ctx context.Context, c *sqldb.Conn) (err error) {
		if _, err := c.Exec("BEGIN"); err != nil {
			return fmt.Errorf("begin read transaction: %w", err)
		}
		defer func() { // deferred in case fn panics
			if _, endErr := c.Exec("ROLLBACK"); endErr != nil {
				err = errors.Join(err, fmt.Errorf("end read transaction: %w", endErr))
			}
		}()
		return during(ctx, c, fn)
	})
}

// ReadLoose implements sqldb.Engine.
func (db *DB) ReadLoose(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return db.read(ctx, r, func(ctx context.Context, c *sqldb.Conn) error { return during(ctx, c, fn) })
}

// errSlow is the cause of a context that ends because a read takes too long.
var errSlow = errors.New("the read took too long")

// read runs fn on a connection of the reader's lane, and again in the lane Long if it is
// long. The context of fn ends at the lane's time limit.
func (db *DB) read(
	ctx context.Context, r sqldb.Reader, fn func(context.Context, *sqldb.Conn) error,
) error {
	if r.Lane != sqldb.Writes || r.Org != "" {
		limited, cancel := context.WithTimeoutCause(ctx, db.maxRead[r.Lane], errSlow)
		defer cancel()
		ctx = limited
	}

	err := db.readIn(ctx, r, fn)
	if errors.Is(err, sqldb.ErrLong) {
		r.Lane = sqldb.Long
		err = db.readIn(ctx, r, fn)
	}
	if err != nil && context.Cause(ctx) == errSlow { //nolint:errorlint // a cause is not wrapped
		return &sqldb.Error{Class: sqldb.Slow, Err: err}
	}
	return err
}

// readIn runs fn on a connection of the reader's lane.
func (db *DB) readIn(ctx context.Context, r sqldb.Reader, fn func(context.Context, *sqldb.Conn) error) error {
	lane := db.lanes[r.Lane]
	c, err := lane.take(ctx, r.Org)
	if err != nil {
		return err
	}
	defer lane.put(c)
	err = fn(ctx, c)
	db.judge(err)
	return err
}

// judge records in the health whether the storage could be read.
func (db *DB) judge(err error) {
	switch sqldb.ClassOf(err) {
	case sqldb.Failing:
		db.health.failed(sqldb.ReadIncident, err)
	case sqldb.Other:
		if err == nil {
			db.health.succeeded(sqldb.ReadIncident)
		}
	}
}

// during runs fn on a connection whose queries end with ctx.
func during(ctx context.Context, c *sqldb.Conn, fn func(*sqldb.Conn) error) error {
	c.SetContext(ctx)
	defer c.SetContext(context.Background())
	return fn(c)
}

// errReadOnly is the error of a write to a file that was opened with OpenReadOnly.
var errReadOnly = errors.New("the database is open for reading only")

// Write implements sqldb.Engine.
func (db *DB) Write(ctx context.Context, w sqldb.Write) error {
	if db.writer == nil {
		return errReadOnly
	}
	return db.writer.write(ctx, w)
}

// TryWrite implements sqldb.Engine.
func (db *DB) TryWrite(w sqldb.Write) bool { return db.writer != nil && db.writer.tryWrite(w) }

// WaitTurn implements sqldb.Engine.
func (db *DB) WaitTurn(ctx context.Context) error {
	if db.writer == nil {
		return errReadOnly
	}
	return db.writer.throttle.wait(ctx)
}

// watchInterval is how often Watch checks for writes by other processes.
const watchInterval = 250 * time.Millisecond

// Watch implements sqldb.Engine.
func (db *DB) Watch(ctx context.Context, checked func(changed bool, err error)) {
	c, err := sqldb.Connect(ctx, db.readDB, &dialect)
	if err != nil {
		checked(false, err)
		return
	}
	defer c.Close()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()

	for seen := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		// The version changes with every commit of another connection.
		var version int64
		err := c.Row("PRAGMA data_version").Scan(&version)
		if err != nil {
			db.judge(err)
		}
		checked(err == nil && version != seen, err)
		if err == nil {
			seen = version
		}
	}
}
