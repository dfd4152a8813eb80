package sqlite

import (
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	checkpointCommits = 32                    // the minimum number of commits between two checkpoints
	checkpointPause   = 50 * time.Millisecond // the minimum time between two checkpoints
)

// A checkpointer copies the write-ahead log into the database file in the
// background. Its checkpoints are PASSIVE: they never block the writer or a
// reader. SQLite restarts the log only when all of it is copied. Under constant
// load the writer does this itself, after wal_autocheckpoint pages, and finds
// little left to copy.
type checkpointer struct {
	conn    *sqldb.Conn
	failed  func(error)
	commits chan struct{} // holds a value for each commit, up to checkpointCommits
	stop    chan struct{}
	running sync.WaitGroup
}

// startCheckpointer starts a checkpointer on its own connection c, which close
// closes. It calls failed with the first error of a series.
func startCheckpointer(c *sqldb.Conn, failed func(error)) *checkpointer {
	k := &checkpointer{
		conn: c, failed: failed, commits: make(chan struct{}, checkpointCommits), stop: make(chan struct{}),
	}
	k.running.Go(k.run)
	return k
}

// countCommit counts a commit, without blocking.
func (k *checkpointer) countCommit() {
	select {
	case k.commits <- struct{}{}:
	default: // a checkpoint is already due
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

// checkpoint copies as much as it can without blocking. A concurrent checkpoint of
// another connection is not an error.
func (k *checkpointer) checkpoint() error {
	var busy, frames, copied int64
	return k.conn.Row("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &copied)
}
