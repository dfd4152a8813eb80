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
	engine.Core
	path         string
	lock         *Lock // nil unless Options.Serve is set
	guard        *guard
	health       *engine.Health
	writeDB      *sql.DB
	readDB       *sql.DB
	conn         *sqldb.Conn // of the writer
	checkpointer *checkpointer
	still        fs.FileInfo // of a file that OpenReadOnly takes for one that does not change
}

var _ sqldb.Engine = (*DB)(nil)

// Open opens the database file at path. It creates the file if it does not exist,
// and migrates its schema to the version of this release.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	db := newDB(path, o)
	db.Readers.MaxRead = engine.MaxRead()
	for lane := range db.Readers.Lanes {
		db.Readers.Lanes[lane] = engine.NewPool(db.Closing)
	}
	if err := db.open(ctx, path, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func newDB(path string, o Options) *DB {
	db := &DB{path: path}
	db.Closing = make(chan struct{})
	db.health = engine.NewHealth(o.Began, o.Ended, db.help)
	db.Readers = engine.Readers{Begin: "BEGIN", Health: db.health}
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
	c, err := Connect(ctx, db.writeDB)
	if err != nil {
		return err
	}
	if err := migrate(c, path, o); err != nil {
		return errors.Join(err, c.Close())
	}
	if o.Serve {
		if err := startGeneration(c, path, o); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	if db.guard, err = newGuard(path); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := db.startWriter(ctx, c, o); err != nil {
		return err
	}
	db.Monitor = engine.StartMonitor(db.guard.check, sqldb.Write{Do: rewriteVersion}, db.health, db.Writer)

	if db.readDB, err = openFile(path, readerPragmas); err != nil {
		return err
	}
	db.readDB.SetMaxIdleConns(0) // a connection that the guard has refused is not used again
	turns := make(sqldb.Turns, searches())
	for lane, n := range readers() {
		for range n {
			c := connectLater(db.readDB, db.guard.check)
			if o.Serve { // reads of a server go on if the file is moved away
				if err := c.Ready(ctx); err != nil {
					return err
				}
			}
			switch sqldb.Lane(lane) {
			case sqldb.Requests:
				c.KeepShort()
				c.TakeTurns(turns)
			case sqldb.Long:
				c.TakeTurns(turns)
			}
			db.Readers.Lanes[lane].Add(c)
		}
	}
	return nil
}

// startWriter starts the writer on c, and the checkpointer on a new connection.
func (db *DB) startWriter(ctx context.Context, c *sqldb.Conn, o Options) error {
	checkpoints, err := Connect(ctx, db.writeDB)
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
	t, err := newTransactions(c, db.guard)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	hooks := o.Hooks
	hooks.AfterCommit = func() {
		o.Hooks.AfterCommit()
		db.checkpointer.countCommit()
	}
	db.conn = c
	db.Writer = engine.NewWriter(t, hooks, db.health)
	return nil
}

// restartLog has the writer restart the log; see the function of that name.
func (db *DB) restartLog(wait time.Duration) error {
	return restartLog(&db.Readers, db.Closing, db.Writer, db.conn, wait)
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
	close(db.Closing)
	if db.checkpointer != nil {
		db.checkpointer.stopRunning()
	}
	if db.Writer != nil {
		db.Writer.Close()
	}
	if db.Monitor != nil {
		db.Monitor.Close()
	}

	// The connections that are open keep the data of a file that is gone.
	if db.Writer != nil {
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
	errs = append(errs, db.Readers.Close())
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

// Stats implements sqldb.Engine.
func (db *DB) Stats() (s sqldb.Stats) {
	s.FileBytes = sizeOf(db.path)
	if db.guard != nil {
		s.LogBytes = sizeOf(db.guard.files[1].path)
	}
	s.Lanes = db.Readers.Stats()
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

// watchInterval is how often Watch checks for writes by other processes.
const watchInterval = 250 * time.Millisecond

// Watch implements sqldb.Engine.
func (db *DB) Watch(ctx context.Context, checked func(changed bool, err error)) {
	c, err := Connect(ctx, db.readDB)
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
			db.Readers.Judge(err)
		}
		checked(err == nil && version != seen, err)
		if err == nil {
			seen = version
		}
	}
}
