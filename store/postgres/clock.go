package postgres

import (
	"sync"
	"time"

	"github.com/ledgerd/ledgerd/store/sqldb"
)

// clockMillis is the clock of the database, in Unix milliseconds.
const clockMillis = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

// A clock follows the clock of the database, so that all processes have the same time. It takes
// the time when a reading arrived as the time of the reading.
type clock struct {
	mu      sync.Mutex
	reading time.Time
	at      time.Time // by the clock of this process, which is monotonic
}

// measure reads the clock of the database.
func (k *clock) measure(c *sqldb.Conn) error {
	var now int64
	if err := c.Row("SELECT " + clockMillis).Scan(&now); err != nil {
		return err
	}
	k.set(now)
	return nil
}

// set sets a reading that has just arrived.
func (k *clock) set(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reading, k.at = time.UnixMilli(now), time.Now()
}

func (k *clock) now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reading.Add(time.Since(k.at))
}
