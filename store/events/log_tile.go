package events

import (
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A logHead is the end of an org's events and of its present log.
type logHead struct {
	seq int64 // of the next event
	log int64 // row id
	// first is the seq of the event of leaf 0.
	first int64
	// built is the number of leaves that the builder has done, or isBuilt.
	built int64
}

// isBuilt says that a log is complete: the writer adds its tiles with the events.
const isBuilt = -1

// A tileKey identifies a tile without its width.
type tileKey struct {
	log   int64
	level int
	n     int64
}

// newLeaf returns a new salt, and the hash of a body with it.
func newLeaf(body []byte) (salt, leaf []byte) {
	var s proof.Salt
	rand.Read(s[:]) // never fails
	hash := proof.HashBody(s, body)
	return s[:], hash[:]
}

// ErrIncomplete means that a leaf or a tile is missing that must be there.
var ErrIncomplete = errors.New("the log is incomplete")

// writeTile writes a full tile of level 0, and the hashes above it.
func writeTile(c *sqldb.Conn, orgID int64, head logHead, n int64) error {
	hashes, err := leafHashes(c, orgID, head.first+n*proof.TileWidth, proof.TileWidth)
	if err != nil {
		return err
	}
	if len(hashes) != proof.TileWidth*tlog.HashSize {
		return fmt.Errorf("%w: %d of %d events have a leaf", ErrIncomplete, len(hashes)/tlog.HashSize, proof.TileWidth)
	}

	for level := 0; ; level++ {
		_, err := c.Exec(`
INSERT INTO tiles (log_id, level, n, hashes) VALUES (?, ?, ?, ?)
ON CONFLICT (log_id, level, n) DO UPDATE SET hashes = excluded.hashes`, head.log, level, n, hashes)
		if err != nil || len(hashes) < proof.TileWidth*tlog.HashSize {
			return err
		}

		root, err := proof.Root(hashes)
		if err != nil {
			return err
		}
		position := n % proof.TileWidth
		n /= proof.TileWidth
		if hashes, err = tileRow(c, head.log, level+1, n); err != nil {
			return err
		}
		if int64(len(hashes)) != position*tlog.HashSize {
			return fmt.Errorf("%w: tile %d of level %d has %d hashes, want %d", ErrIncomplete, n, level+1,
				len(hashes)/tlog.HashSize, position)
		}
		hashes = append(hashes, root[:]...)
	}
}

// fillTiles writes the tiles that the events from the head up to that with the seq next, but
// without it, have filled.
func fillTiles(c *sqldb.Conn, orgID int64, head logHead, next int64) error {
	if head.built != isBuilt {
		return nil
	}
	before, after := max(head.seq-head.first, 0), next-head.first // the log may have begun after the head
	for n := before / proof.TileWidth; n < after/proof.TileWidth; n++ {
		err := writeTile(c, orgID, head, n)
		if errors.Is(err, ErrIncomplete) { // the builder reports it; writes go on
			_, err = c.Exec("UPDATE orgs SET log_built = ? WHERE id = ?", n*proof.TileWidth, orgID)
			n = after
		}
		if err != nil {
			return fmt.Errorf("write tile %d of the log: %w", n, err)
		}
	}
	return nil
}

// tileRow reads the stored hashes of a tile: none if it is not stored.
func tileRow(c *sqldb.Conn, log int64, level int, n int64) (hashes []byte, err error) {
	rows, err := sqldb.All(c, func(row sqldb.Scanner) (b []byte, err error) { return b, row.Scan(&b) },
		"SELECT hashes FROM tiles WHERE log_id = ? AND level = ? AND n = ?", log, level, n)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// leafHashes returns the hashes of an org's leaves from a seq on, at most limit. It ends
// before an event without a leaf.
func leafHashes(c *sqldb.Conn, orgID, from int64, limit int) ([]byte, error) {
	leaves, err := leavesFrom(c, orgID, from, limit)
	if err != nil {
		return nil, err
	}
	hashes := make([]byte, 0, len(leaves)*tlog.HashSize)
	for _, l := range leaves {
		hash := l.LeafHash()
		hashes = append(hashes, hash[:]...)
	}
	return hashes, nil
}

// leavesFrom returns an org's leaves from a seq on, at most limit. It ends before an event
// without a leaf.
func leavesFrom(c *sqldb.Conn, orgID, from int64, limit int) ([]proof.Leaf, error) {
	leaves, err := sqldb.All(c, scanLeaf, `
SELECT event_id, type, at, leaf FROM events WHERE org_id = ? AND seq >= ? AND seq < ? ORDER BY seq`,
		orgID, from, from+int64(limit))
	if err != nil {
		return nil, fmt.Errorf("read leaves: %w", err)
	}
	list := make([]proof.Leaf, 0, len(leaves))
	for _, l := range leaves {
		if l.Hash == nil {
			break
		}
		list = append(list, l.leaf())
	}
	return list, nil
}

// A leafRow is the leaf of an event; its hash is nil if the log is not built up to it.
type leafRow struct {
	Event string
	Type  ledger.EventType
	At    ledger.Time
	Hash  []byte
}

func scanLeaf(row sqldb.Scanner) (l leafRow, err error) {
	return l, row.Scan(&l.Event, &l.Type, &l.At, &l.Hash)
}

func (l leafRow) leaf() proof.Leaf {
	leaf := proof.Leaf{At: l.At, Event: l.Event, Type: l.Type}
	copy(leaf.Hash[:], l.Hash)
	return leaf
}
