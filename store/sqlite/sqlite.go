// Package sqlite is the database engine that stores the ledger in one SQLite file.
// One goroutine writes and commits many writes per transaction. A pool of
// connections reads.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/ledgerd/ledgerd/store/engine"
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

// A DB is an open SQLite file. It implements sqldb.Engine.
type DB struct {
	path         string
	lock         *Lock // nil unless Options.Serve is set
	guard        *guard
	health       *engine.Health
	writeDB      *sql.DB
	readDB       *sql.DB
	conn         *sqldb.Conn // of the writer
	writer       *engine.Writer
	checkpointer *checkpointer
	monitor      *engine.Monitor
	readers      engine.Readers
	still        fs.FileInfo   // of a file that OpenReadOnly takes for one that does not change
	closing      chan struct{} // closed by Close
}

var _ sqldb.Engine = (*DB)(nil)

// Open opens the database file at path. It creates the file if it does not exist,
// and migrates its schema to the version of this release.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	db := newDB(path, o)
	db.readers.MaxRead = engine.MaxRead()
	for lane := range db.readers.Lanes {
		db.readers.Lanes[lane] = engine.NewPool(db.closing)
	}
	if err := db.open(ctx, path, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func newDB(path string, o Options) *DB {
	db := &DB{path: path, closing: make(chan struct{})}
	db.health = engine.NewHealth(o.Began, o.Ended, db.help)
	db.readers = engine.Readers{Begin: "BEGIN", Health: db.health}
	return db
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
	db.monitor = engine.StartMonitor(db.guard.check, sqldb.Write{Do: rewriteVersion}, db.health, db.writer)

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
			db.readers.Lanes[lane].Add(c)
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
	db.conn = c
	db.writer = engine.NewWriter(transactions{c, db.guard}, hooks, db.health)
	return nil
}

// restartLog has the writer restart the log; see the function of that name.
func (db *DB) restartLog(wait time.Duration) error {
	return restartLog(&db.readers, db.closing, db.writer, db.conn, wait)
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
		db.writer.Close()
	}
	if db.monitor != nil {
		db.monitor.Close()
	}

	// The connections that are open keep the data of a file that is gone.
	if db.writer != nil {
		if err := db.guard.check(); err != nil {
			errs = append(errs, rescue(db.conn, db.path, err))
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
	errs = append(errs, db.readers.Close())
	if db.readDB != nil {
		errs = append(errs, db.readDB.Close())
	}

	if db.conn != nil {
		errs = append(errs, db.conn.Close())
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
	return db.monitor.Ready()
}

// Stats implements sqldb.Engine.
func (db *DB) Stats() (s sqldb.Stats) {
	s.FileBytes = sizeOf(db.path)
	if db.guard != nil {
		s.LogBytes = sizeOf(db.guard.files[1].path)
	}
	s.Lanes = db.readers.Stats()
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
	return db.readers.Read(ctx, r, fn)
}

// ReadLoose implements sqldb.Engine.
func (db *DB) ReadLoose(ctx context.Context, r sqldb.Reader, fn func(*sqldb.Conn) error) error {
	return db.readers.ReadLoose(ctx, r, fn)
}

// errReadOnly is the error of a write to a file that was opened with OpenReadOnly.
var errReadOnly = errors.New("the database is open for reading only")

// Write implements sqldb.Engine.
func (db *DB) Write(ctx context.Context, w sqldb.Write) error {
	if db.writer == nil {
		return errReadOnly
	}
	return db.writer.Write(ctx, w)
}

// TryWrite implements sqldb.Engine.
func (db *DB) TryWrite(w sqldb.Write) bool { return db.writer != nil && db.writer.TryWrite(w) }

// WaitTurn implements sqldb.Engine.
func (db *DB) WaitTurn(ctx context.Context) error {
	if db.writer == nil {
		return errReadOnly
	}
	return db.writer.WaitTurn(ctx)
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
			db.readers.Judge(err)
		}
		checked(err == nil && version != seen, err)
		if err == nil {
			seen = version
		}
	}
}
