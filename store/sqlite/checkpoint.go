package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

const (
	checkpointCommits = 32                    // the minimum number of commits between two checkpoints
	checkpointPause   = 50 * time.Millisecond // the minimum time between two checkpoints

	// maxLog is the size of the log, in bytes, above which it is restarted at the expense
	// of readers. Normally SQLite restarts it earlier, at wal_autocheckpoint.
	maxLog    = 32 << 20
	frameSize = 4096 + 24 // a page in the log

	// restartPause is the time between two attempts to restart the log. It doubles with
	// each failure, up to the maximum.
	restartPause    = time.Second / 2
	maxRestartPause = 8 * time.Second
	// turnWait is how long running reads may take to finish before the log is restarted.
	// It grows like the pause.
	turnWait    = time.Second / 4
	maxTurnWait = 2 * time.Second
	// foreignFailures is the number of consecutive failures after which the transaction
	// of another process is reported.
	foreignFailures = 3
)

// errForeign is returned by an attempt to restart the log if another process reads it.
var errForeign = errors.New("another process reads the log")

// A checkpointer copies the write-ahead log into the database file in the background.
// Its checkpoints are PASSIVE: they never block the writer or a reader. SQLite restarts
// the log only when all of it is copied and it has no reader. Under constant load the
// writer does this itself, after wal_autocheckpoint pages, and finds little left to
// copy. If there are always readers, it cannot, and the checkpointer restarts the log.
type checkpointer struct {
	conn    *sqldb.Conn
	guard   *guard
	health  *engine.Health
	restart func(wait time.Duration) error // restarts the log if it has no reader
	commits chan struct{}                  // holds a value for each commit, up to checkpointCommits
	stop    chan struct{}
	running sync.WaitGroup
	backups atomic.Int32 // running backups, which read the log from its beginning

	// The schedule of attempts to restart the log.
	next    time.Time     // when the next one may begin
	pause   time.Duration // the time to wait after the next failure
	turn    time.Duration // how long the next one may wait for readers
	foreign int           // consecutive failures because of another process
}

// newCheckpointer returns a checkpointer on its own connection c, which start starts.
func newCheckpointer(c *sqldb.Conn, g *guard, h *engine.Health,
	restart func(wait time.Duration) error,
) *checkpointer {
	return &checkpointer{
		conn: c, guard: g, health: h, restart: restart, pause: restartPause, turn: turnWait,
		commits: make(chan struct{}, checkpointCommits), stop: make(chan struct{}),
	}
}

func (k *checkpointer) start() { k.running.Go(k.run) }

// countCommit counts a commit, without blocking.
func (k *checkpointer) countCommit() {
	select {
	case k.commits <- struct{}{}:
	default: // a checkpoint is already due
	}
}

// stopRunning stops the checkpointer. Its connection stays open.
func (k *checkpointer) stopRunning() {
	close(k.stop)
	k.running.Wait()
}

func (k *checkpointer) run() {
	for k.wait() {
		if k.guard.check() == nil { // else it would copy into a file that is gone
			k.checkpoint()
		}

		select {
		case <-time.After(checkpointPause):
		case <-k.stop:
			return
		}
	}
}

// wait waits until a checkpoint is due: after checkpointCommits, or for another attempt
// to restart the log. It returns false when the checkpointer stops.
func (k *checkpointer) wait() bool {
	var retry <-chan time.Time
	if !k.next.IsZero() {
		retry = time.After(time.Until(k.next))
	}
	for range checkpointCommits {
		select {
		case <-k.commits:
		case <-retry:
			return true
		case <-k.stop:
			return false
		}
	}
	return true
}

// checkpoint copies as much as it can without blocking. A concurrent checkpoint of
// another connection is not an error. If the log is too large, it is restarted.
func (k *checkpointer) checkpoint() {
	var busy, frames, copied int64
	if err := k.conn.Row("PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &copied); err != nil {
		k.health.Failed(sqldb.CheckpointIncident, err)
		return
	}
	k.health.Succeeded(sqldb.CheckpointIncident)

	if frames*frameSize <= maxLog {
		k.restarted()
		return
	}
	if now := time.Now(); now.After(k.next) && k.backups.Load() == 0 {
		k.restartLog(frames * frameSize)
	}
}

// restartLog tries to restart a log of the given size.
func (k *checkpointer) restartLog(size int64) {
	err := k.restart(k.turn)
	if err == nil {
		k.restarted()
		return
	}
	k.next = time.Now().Add(k.pause)
	k.pause = min(2*k.pause, maxRestartPause)
	if !errors.Is(err, errForeign) {
		k.turn = min(2*k.turn, maxTurnWait)
		return
	}
	if k.foreign++; k.foreign >= foreignFailures {
		k.health.Failed(sqldb.WALIncident, fmt.Errorf("another process, perhaps a backup, keeps a transaction "+
			"open: the write-ahead log has grown to %d MB and cannot be reset", size>>20))
	}
}

// restarted records that the log is no longer too large.
func (k *checkpointer) restarted() {
	k.next, k.pause, k.turn, k.foreign = time.Time{}, restartPause, turnWait, 0
	k.health.Succeeded(sqldb.WALIncident)
}
