package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/store/engine"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// writerWait is how long the writer may take to finish its transaction.
const writerWait = 250 * time.Millisecond

// errTurn is returned by restartLog if a reader or the writer takes too long.
var errTurn = errors.New("readers or the writer take too long")

// restartLog has the writer, whose connection is c, start the log again from the beginning. No reader may use
// the log at that time. So restartLog pauses the pools, and gives running reads the
// given time to finish. It returns errForeign if another process still reads the log.
func restartLog(
	readers *engine.Readers, closing <-chan struct{}, w *engine.Writer, c *sqldb.Conn, wait time.Duration,
) error {
	timeout := time.After(wait)
	for _, p := range readers.Lanes {
		quiet := p.Pause()
		defer p.Resume()
		select {
		case <-quiet:
		case <-timeout:
			return errTurn
		case <-closing:
			return errTurn
		}
	}

	var err error
	if !w.Between(writerWait, func() { err = checkpointAll(c) }) {
		return errTurn
	}
	return err
}

// checkpointAll copies the rest of the log, so that the next write restarts it. It
// waits for other processes only for the busy timeout of the connection.
func checkpointAll(c *sqldb.Conn) error {
	var busy, frames, copied int64
	if err := c.Row("PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &frames, &copied); err != nil {
		return fmt.Errorf("restart the log: %w", err)
	}
	if busy != 0 {
		return errForeign
	}
	return nil
}
