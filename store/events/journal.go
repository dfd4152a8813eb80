// Package events is the room of what is appended: the events of an org with the leaves and tiles of
// its log, the index of administrative actions, and the deliveries that an event queues. What the
// events are about is decided in the rooms above, which also claim, settle and prune. Its tables are
// events, logs, tiles, audits, violation_events, receipt_keys and restores.
package events

import (
	"fmt"

	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Journal appends events and reads them. Its methods are safe for concurrent use, except those with
// a txn.Tx, which the writer's goroutine calls.
type Journal struct {
	db       *txn.DB
	tiles    tileCache
	notifier notifier
	queued   *queued
	writing
}

// A tileCache holds hashes of tiles, which may be newer than the full ones.
type tileCache = *txn.Cache[tileKey, []byte]

// maxTiles limits the cached tiles, of up to 8 KiB.
const maxTiles = 1000

func newTileCache() tileCache { return txn.NewCache[tileKey, []byte](maxTiles) }

// New returns the room of a database.
func New(db *txn.DB) *Journal {
	j := &Journal{db: db, tiles: newTileCache(), queued: newQueued(), writing: newWriting()}
	db.Attach(txn.Part{
		Flush: j.flush, Keep: func(*txn.Tx) { j.keep() }, Discard: j.discard,
		BeforeCommit: j.beforeCommit, AfterCommit: j.afterCommit, AfterRollback: j.reset,
	})
	return j
}

// afterCommit wakes those who wait for the events and deliveries of the transaction.
func (j *Journal) afterCommit() {
	for orgID := range j.heads {
		j.notifier.notify(orgID)
	}
	j.queued.add(j.total.queued, j.total.changed)
	j.reset()
}

// beforeCommit numbers the next events of the orgs, and writes the tiles that the events of the
// transaction have filled.
func (j *Journal) beforeCommit(c *sqldb.Conn) error {
	for orgID, n := range j.total.appended {
		if err := c.Queue("UPDATE orgs SET next_seq = next_seq + ? WHERE id = ?", n, orgID); err != nil {
			return fmt.Errorf("number events: %w", err)
		}
	}
	for orgID, head := range j.heads {
		if err := fillTiles(c, orgID, head, head.seq+j.total.appended[orgID]); err != nil {
			return err
		}
	}
	return nil
}
