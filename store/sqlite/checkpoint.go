package sqlite

import (
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	// checkpointCommits is how many commits a checkpoint waits for, and
	// checkpointPause how long it waits after the one before it.
	checkpointCommits = 32
	checkpointPause   = 50 * time.Millisecond
)

// A checkpointer copies the write-ahead log into the database file while the
// writer goes on. It never blocks the writer or a reader (SQLite calls that
// PASSIVE). The log starts again from its beginning only once all of it is copied:
// under a load without a pause the writer sees to that itself, at
// wal_autocheckpoint pages, and finds little left to copy.
type checkpointer struct {
	conn    *sqldb.Conn
	failed  func(error)
	commits chan struct{} // holds a signal for each commit, up to checkpointCommits
	stop    chan struct{}
	running sync.WaitGroup
}

// startCheckpointer starts a checkpointer on a connection of its own, which it
// closes in the end. It calls failed when checkpoints begin to fail.
func startCheckpointer(c *sqldb.Conn, failed func(error)) *checkpointer {
	k := &checkpointer{
		conn: c, failed: failed, commits: make(chan struct{}, checkpointCommits), stop: make(chan struct{}),
	}
	k.running.Go(k.run)
	return k
}

// note counts a commit. It does not wait.
func (k *checkpointer) note() {
	select {
	case k.commits <- struct{}{}:
	default: // a checkpoint is due already
	}
}

// close stops the checkpointer and closes its connection.
func (k *checkpointer) close() error {
	close(k.stop)
	k.running.Wait()
	return k.conn.Close()
}

func (k *checkpointer) run() {
	for failing := false; ; {
		for range checkpointCommits {
			select {
			case <-k.commits:
			case <-k.stop:
				return
			}
		}
		err := k.checkpoint()
		if err != nil && !failing {
			k.failed(err)
		}
		failing = err != nil
		select {
		case <-time.After(checkpointPause):
		case <-k.stop:
			return
		}
	}
}

// checkpoint copies what it can. Another connection that does so too is no error.
func (k *checkpointer) checkpoint() error {
	var busy, frames, copied int64
	return k.conn.Row("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &copied)
}
