package events

import (
	"context"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Log is the transparency log of an org in one epoch.
type Log struct {
	Org   string
	Epoch int // from 1
	// Leaves is how many events are in the log, and FirstSeq the sequence number of the
	// first. Those after Size are not in a checkpoint yet.
	Leaves, FirstSeq int64
	// Building reports that leaves of events from before an upgrade are still missing, of
	// which Built are done.
	Building bool
	Built    int64
	// Frozen reports that a later epoch has replaced the log.
	Frozen bool
	Public bool // may be read without a token

	// Origin names the log. It is empty, like the fields after it, until the first
	// checkpoint.
	Origin     string
	VKey       string // its key, as a verifier key of a signed note
	Size       int64  // of the newest checkpoint
	Checkpoint []byte // signed, with cosignatures
	SignedAt   ledger.Time

	ID, OrgID int64
}

const selectLog = `
SELECT l.id, o.id, o.name, l.epoch, o.next_seq, l.first_seq,
  coalesce((SELECT min(first_seq) FROM logs WHERE org_id = l.org_id AND epoch > l.epoch), -1),
  o.log_built, o.log_public,
  l.origin, l.vkey, l.size, l.checkpoint, l.signed_at
FROM logs l JOIN orgs o ON o.id = l.org_id `

func scanLog(row txn.Scanner) (l Log, err error) {
	var next, end int64
	var checkpoint string
	err = row.Scan(&l.ID, &l.OrgID, &l.Org, &l.Epoch, &next, &l.FirstSeq, &end, &l.Built, &l.Public, &l.Origin, &l.VKey,
		&l.Size, &checkpoint, &l.SignedAt)
	l.Checkpoint = []byte(checkpoint)
	if end >= 0 {
		next, l.Frozen, l.Built = end, true, isBuilt
	}
	l.Leaves, l.Building = next-l.FirstSeq, l.Built != isBuilt
	return l, err
}

// Log returns the log of an org in an epoch, or the present one if epoch is 0.
func (j *Journal) Log(ctx context.Context, org string, epoch int) (Log, error) {
	return txn.ReadLoose(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (Log, error) { return FindLog(rd, org, epoch) })
}

// FindLog is Log within a read.
func FindLog(rd txn.Reader, org string, epoch int) (Log, error) {
	if epoch == 0 {
		l, err := scanLog(rd.Row(selectLog+"WHERE o.name = ? AND l.id = o.log_id", org))
		return l, txn.Missing(err, "org %s not found", org)
	}
	l, err := scanLog(rd.Row(selectLog+"WHERE o.name = ? AND l.epoch = ?", org, epoch))
	return l, txn.Missing(err, "org %s has no log of epoch %d", org, epoch)
}

// LogsToSign lists the present logs with events that are in no checkpoint, or, with all,
// every log with events: at most limit, beginning after an org. Logs that are being built, and
// those of deleted orgs, are left out.
func (j *Journal) LogsToSign(ctx context.Context, all bool, after string, limit int) ([]Log, error) {
	covered := "l.size"
	if all {
		covered = "0"
	}
	logs, err := txn.ReadLoose(ctx, j.db, txn.ForWrite(""), func(rd txn.Reader) ([]Log, error) {
		return sqldb.All(rd.Conn, scanLog, selectLog+`
WHERE l.id = o.log_id AND o.deleted_at = 0 AND o.log_built = ? AND o.next_seq - l.first_seq > `+covered+` AND o.name > ?
ORDER BY o.name LIMIT ?`, isBuilt, after, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", err)
	}
	return logs, nil
}

// LogsSigned lists the present logs whose checkpoint was stored at a time or later: at most limit,
// beginning after an org.
func (j *Journal) LogsSigned(ctx context.Context, since ledger.Time, after string, limit int) ([]Log, error) {
	logs, err := txn.ReadLoose(ctx, j.db, txn.ForWrite(""), func(rd txn.Reader) ([]Log, error) {
		return sqldb.All(rd.Conn, scanLog, selectLog+`
WHERE l.id = o.log_id AND o.deleted_at = 0 AND l.size > 0 AND l.signed_at >= ? AND o.name > ?
ORDER BY o.name LIMIT ?`, since, after, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("list signed logs: %w", err)
	}
	return logs, nil
}

// BeginLog begins the log of an org in a new epoch, with the event that has the sequence
// number first.
func BeginLog(t *txn.Tx, orgID int64, epoch int, first int64) (logHead, error) {
	id, err := t.Insert("INSERT INTO logs (org_id, epoch, first_seq) VALUES (?, ?, ?)", orgID, epoch, first)
	if err != nil {
		return logHead{}, fmt.Errorf("begin log: %w", err)
	}
	_, err = t.Exec("UPDATE orgs SET log_id = ?, log_first = ?, log_built = ? WHERE id = ?", id, first, isBuilt, orgID)
	if err != nil {
		return logHead{}, fmt.Errorf("begin log: %w", err)
	}
	return logHead{log: id, first: first, built: isBuilt}, nil
}

// BeginOrigin fixes the name and the key of a log, before its first checkpoint. It is idempotent,
// since several servers may begin a log; it is an error if the log has another name or key.
func (j *Journal) BeginOrigin(ctx context.Context, l Log, origin, vkey string) error {
	return j.db.WriteFor(ctx, []int64{l.OrgID}, func(t *txn.Tx) error {
		n, err := t.Exec(`
UPDATE logs SET origin = ?, vkey = ? WHERE id = ? AND (origin = '' OR origin = ? AND vkey = ?)`,
			origin, vkey, l.ID, origin, vkey)
		if err == nil && n == 0 {
			err = fmt.Errorf("another server has begun the log of %s with another name or key: base_url and the keys in "+
				"log.key_dir must be the same on all servers", l.Org)
		}
		return err
	})
}

// SaveCheckpoint stores a signed checkpoint of a log, with its cosignatures, unless a larger
// one is stored, or one of the same size with more cosignatures.
func (j *Journal) SaveCheckpoint(ctx context.Context, l Log, size int64, checkpoint []byte) error {
	return j.db.WriteFor(ctx, []int64{l.OrgID}, func(t *txn.Tx) error {
		_, err := t.Exec(`
UPDATE logs SET size = ?, checkpoint = ?, signed_at = ?
WHERE id = ? AND (size < ? OR size = ? AND length(checkpoint) <= ?)`,
			size, string(checkpoint), t.Now, l.ID, size, size, utf8.RuneCount(checkpoint))
		if err != nil {
			return fmt.Errorf("save checkpoint: %w", err)
		}
		return nil
	})
}

// Tile returns the hashes of a tile, or the records of an entry bundle. The newest
// checkpoint must cover it. In a log that was replaced, all leaves are covered: the next log
// commits to them.
func (j *Journal) Tile(ctx context.Context, l Log, tile proof.Tile) ([]byte, error) {
	size := l.Size
	if l.Frozen {
		size = l.Leaves
	}
	if tile.WidthIn(size) < tile.Width {
		return nil, ledger.Errorf(ledger.CodeNotFound, "the log of %s has no tile %s: its checkpoint has %d leaves",
			l.Org, tile.Path(), size)
	}
	return txn.ReadLoose(ctx, j.db, txn.ByOrg(l.Org), func(rd txn.Reader) ([]byte, error) {
		if tile.Level == proof.Entries {
			return entries(rd, l, tile)
		}
		return j.tile(rd, l, tile)
	})
}

// entries returns an entry bundle. It is an error if the body of an event is not what its leaf
// commits to; a pruned body cannot be compared.
func entries(rd txn.Reader, l Log, tile proof.Tile) ([]byte, error) {
	from := l.FirstSeq + tile.N*proof.TileWidth
	leaves, err := txn.All(rd, scanEntry, `
SELECT event_id, type, at, leaf, salt, CASE WHEN salt IS NOT NULL THEN body END FROM events
WHERE org_id = ? AND seq >= ? AND seq < ? ORDER BY seq`, l.OrgID, from, from+int64(tile.Width))
	if err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	if len(leaves) < tile.Width {
		return nil, fmt.Errorf("%w: entries %s", ErrIncomplete, tile.Path())
	}

	var bundle []byte
	for _, leaf := range leaves {
		bundle = proof.AppendEntry(bundle, leaf.Record())
	}
	return bundle, nil
}

// scanEntry scans the leaf of an event, and compares it with the body.
func scanEntry(row txn.Scanner) (proof.Leaf, error) {
	var l leafRow
	var salt, body []byte
	err := row.Scan(&l.Event, &l.Type, &l.At, &l.Hash, &salt, &body)
	switch leaf := l.leaf(); {
	case err != nil:
		return leaf, err
	case l.Hash == nil:
		return leaf, fmt.Errorf("%w: event %s has no leaf", ErrIncomplete, l.Event)
	case len(salt) == proof.SaltSize && proof.HashBody(proof.Salt(salt), body) != leaf.Hash:
		return leaf, fmt.Errorf("the body of event %s is not what its leaf commits to: the database was changed", l.Event)
	default:
		return leaf, nil
	}
}

// tile returns the hashes of a tile. Hashes never change, so a tile that was read once
// answers for all that are not wider.
func (j *Journal) tile(rd txn.Reader, l Log, tile proof.Tile) ([]byte, error) {
	key, size := tileKey{l.ID, tile.Level, tile.N}, tile.Width*tlog.HashSize
	hashes, ok := j.tiles.Get(key)
	if ok && len(hashes) >= size {
		return hashes[:size], nil
	}

	hashes, err := tileRow(rd.Conn, l.ID, tile.Level, tile.N)
	if err == nil && len(hashes) < size && tile.Level == 0 {
		hashes, err = leafHashes(rd.Conn, l.OrgID, l.FirstSeq+tile.N*proof.TileWidth, tile.Width)
	}
	if err != nil {
		return nil, err
	}
	if len(hashes) < size {
		return nil, fmt.Errorf("%w: tile %s has %d hashes", ErrIncomplete, tile.Path(), len(hashes)/tlog.HashSize)
	}
	j.tiles.Put(key, hashes)
	return hashes[:size], nil
}

// hashes returns the reader of a log's hashes that package tlog needs.
func (j *Journal) hashes(rd txn.Reader, l Log) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			t := tlog.TileForIndex(proof.TileHeight, index)
			data, err := j.tile(rd, l, proof.Tile{Level: t.L, N: t.N, Width: t.W})
			if err != nil {
				return nil, err
			}
			if hashes[i], err = tlog.HashFromTile(t, data, index); err != nil {
				return nil, err
			}
		}
		return hashes, nil
	})
}

// Root returns the root hash of a log's first size leaves.
func (j *Journal) Root(ctx context.Context, l Log, size int64) (tlog.Hash, error) {
	return txn.ReadLoose(ctx, j.db, txn.ForWrite(l.Org), func(rd txn.Reader) (tlog.Hash, error) {
		return j.root(rd, l, size)
	})
}

func (j *Journal) root(rd txn.Reader, l Log, size int64) (tlog.Hash, error) {
	if size == 0 {
		return sha256.Sum256(nil), nil // RFC 6962, section 2.1
	}
	if size < 0 || size > l.Leaves {
		return tlog.Hash{}, fmt.Errorf("the log of %s has %d leaves, not %d", l.Org, l.Leaves, size)
	}
	root, err := tlog.TreeHash(size, j.hashes(rd, l))
	if err != nil {
		return root, fmt.Errorf("compute the root of the log of %s: %w", l.Org, err)
	}
	return root, nil
}

// Consistency returns the proof that the first old leaves of a log are a prefix of the first
// size (RFC 6962, section 2.1.2). It is empty if old is 0 or size.
func (j *Journal) Consistency(ctx context.Context, l Log, old, size int64) (tlog.TreeProof, error) {
	if old == 0 || old == size {
		return nil, nil
	}
	return txn.ReadLoose(ctx, j.db, txn.ForWrite(l.Org), func(rd txn.Reader) (tlog.TreeProof, error) {
		path, err := tlog.ProveTree(size, old, j.hashes(rd, l))
		if err != nil {
			return nil, fmt.Errorf("prove the consistency of the log of %s: %w", l.Org, err)
		}
		return path, nil
	})
}

// EventProof returns the proof that an event is in the log of its org.
func (j *Journal) EventProof(ctx context.Context, org, event string) (proof.Inclusion, error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (p proof.Inclusion, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return p, err
		}
		ref, err := Find(rd, orgID, event)
		if err != nil {
			return p, txn.Missing(err, "event %s not found", event)
		}
		return j.Prove(rd, org, ref)
	})
}

// Prove returns the proof that an event is in the log of its org.
func (j *Journal) Prove(rd txn.Reader, org string, ref Ref) (p proof.Inclusion, err error) {
	l, err := scanLog(rd.Row(selectLog+`
WHERE o.name = ? AND l.first_seq <= ? ORDER BY l.epoch DESC LIMIT 1`, org, ref.Seq))
	if err != nil {
		return p, txn.Missing(err, "org %s not found", org)
	}
	p.Index, p.Checkpoint = ref.Seq-l.FirstSeq, l.Checkpoint
	if p.Index >= l.Size {
		return p, notInCheckpoint(l)
	}

	opening, err := opening(rd, ref.Row)
	if err != nil {
		return p, err
	}
	if p.Extra, err = opening.Format(); err != nil {
		return p, err
	}
	path, err := tlog.ProveRecord(l.Size, p.Index, j.hashes(rd, l))
	if err != nil {
		return p, fmt.Errorf("prove leaf %d of %s: %w", p.Index, org, err)
	}
	p.Path = path
	return p, nil
}

// notInCheckpoint returns why an event cannot be proved.
func notInCheckpoint(l Log) error {
	switch {
	case l.Frozen:
		return ledger.Errorf(ledger.CodeNotInCheckpoint,
			"no checkpoint of epoch %d covers this event: the first event of the next epoch commits to it", l.Epoch)
	case l.Size == 0:
		return ledger.Errorf(ledger.CodeNotInCheckpoint,
			"the log of %s has no checkpoint yet: the server signs one if base_url is set", l.Org)
	}
	return ledger.Errorf(ledger.CodeNotInCheckpoint, "no checkpoint covers this event yet (try again in a second)")
}

// opening reads what shows what the leaf of an event commits to.
func opening(rd txn.Reader, row int64) (o proof.Opening, err error) {
	var l leafRow
	var salt []byte
	err = rd.Row("SELECT event_id, type, at, leaf, salt FROM events WHERE id = ?", row).
		Scan(&l.Event, &l.Type, &l.At, &l.Hash, &salt)
	if err != nil {
		return o, fmt.Errorf("read leaf: %w", err)
	}
	if len(l.Hash) == 0 {
		return o, ErrIncomplete
	}
	o.Leaf = l.leaf()
	if len(salt) == proof.SaltSize {
		o.Salt = (*proof.Salt)(salt)
	}
	return o, nil
}
