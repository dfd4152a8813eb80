package check

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check/derived"
	"github.com/ledgerd/ledgerd/store/check/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An org is an org with its logs, as they were when the check of the org began.
type org struct {
	id    int64
	name  string
	end   int64 // the seq of its next event
	log   int64 // the row id of its present log
	first int64
	built int64 // leaves of the present log that the builder has done, or isBuilt
	logs  []*orgLog

	outside      int64 // events that are not numbered from 0 to end
	listed       int64 // administrative actions and violations that are listed with other numbers
	attestations int64

	signers  *signers.Org
	derived  *derived.Org
	settings loggedSettings

	// What was checked: the row id of the last event, and the number of attestations that have
	// an event.
	lastRow, matched int64
	// linked counts the rows of artifacts that follow from an attestation, of artifacts rows.
	artifacts, linked int64
	// The same of exceptions, of claims of merges, and of change records.
	exceptions, excused, merges, merged, records, recorded int64

	isUnmapped bool // attestations are about to be mapped by later rules
}

// receiptKeys checks the keys of receipts of an org's logs.
func (o *org) receiptKeys(ctx context.Context) error {
	logs := make([]signers.Log, len(o.logs))
	for i, l := range o.logs {
		logs[i] = signers.Log{ID: l.id, First: l.first, End: l.end, Row: l.row()}
	}
	return o.signers.CheckReceiptKeys(ctx, logs)
}

// isBuilt says that the log of an org is complete.
const isBuilt = -1

// An orgLog is the log of an org in one epoch.
type orgLog struct {
	id, epoch  int64
	first, end int64 // the seq of the first event, and the one after the last
	origin     string
	vkey       string
	size       int64 // of the newest checkpoint
	checkpoint []byte
	// tiled is how many leaves the tiles cover. It is less than all while a log is built.
	tiled   int64
	stored  []level        // the stored tiles of each level
	partial map[int][]byte // the stored tiles that are not full, by level
	anchors []anchor       // in the order of their size
	tree    proof.Tree     // of the leaves that were checked
	stopped bool           // a leaf is missing: the tree does not grow any more
}

// A level counts the stored tiles of a level.
type level struct{ level, tiles, last int64 }

// An anchor is a checkpoint that is known, with which the leaves must agree.
type anchor struct {
	what string
	size int64
	root tlog.Hash
}

// leaves returns the number of leaves of the log.
func (l *orgLog) leaves() int64 { return l.end - l.first }

// isBuilding reports whether leaves from before an upgrade may still be missing.
func (l *orgLog) isBuilding() bool { return l.tiled < l.leaves() }

// row names the log in a problem.
func (l *orgLog) row() string {
	if l.epoch == 1 {
		return "log"
	}
	return fmt.Sprintf("log of epoch %d", l.epoch)
}

// tileRow names a tile in a problem.
func (l *orgLog) tileRow(t proof.Tile) string { return l.row() + " tile " + t.Path() }

// nextOrgs returns the row ids of the next orgs.
func (c *checker) nextOrgs(ctx context.Context, after int64) (ids []int64, err error) {
	err = c.Read(ctx, func(conn *sqldb.Conn) (err error) {
		ids, err = sqldb.All(conn, scanID, "SELECT id FROM orgs WHERE id > ? ORDER BY id LIMIT ?", after, orgsPage)
		return err
	})
	return ids, err
}

// orgsPage is the number of orgs that are read at a time.
const orgsPage = 500

// readOrg reads an org and its logs.
func (c *checker) readOrg(conn *sqldb.Conn, id int64) (o *org, err error) {
	o = &org{id: id}
	var isDeleted bool
	err = conn.Row("SELECT name, next_seq, log_id, log_first, log_built, deleted_at > 0 FROM orgs WHERE id = ?", id).
		Scan(&o.name, &o.end, &o.log, &o.first, &o.built, &isDeleted)
	if err != nil {
		return o, fmt.Errorf("read org: %w", err)
	}
	o.signers = signers.New(c.Database, o.id, o.name, o.end)
	o.derived, err = derived.New(conn, derived.Subject{
		Database: c.Database, Store: c.store, Signers: o.signers, ID: id, Name: o.name, End: o.end, Deleted: isDeleted,
		MappedBelow: c.mapping.below, MaxKnown: c.maxKnown,
	})
	if err != nil {
		return o, err
	}
	o.settings = newLoggedSettings(o.end)
	err = conn.Row(`
SELECT (SELECT count(*) FROM events WHERE org_id = ? AND seq < 0) +
  (SELECT count(*) FROM events WHERE org_id = ? AND seq >= ?)`,
		id, id, o.end).Scan(&o.outside)
	if err != nil {
		return o, fmt.Errorf("count events: %w", err)
	}
	err = conn.Row(`
SELECT (SELECT count(*) FROM audits WHERE org_id = ? AND (seq < 0 OR seq >= ?)) +
  (SELECT count(*) FROM violation_events WHERE org_id = ? AND (seq < 0 OR seq >= ?))`, id, o.end, id, o.end).
		Scan(&o.listed)
	if err != nil {
		return o, fmt.Errorf("count listed events: %w", err)
	}

	err = conn.Row("SELECT count(*) FROM attestations WHERE repo_id IN (SELECT id FROM repos WHERE org_id = ?)", id).
		Scan(&o.attestations)
	if err != nil {
		return o, fmt.Errorf("count attestations: %w", err)
	}

	if err := conn.Row("SELECT count(*) FROM artifacts WHERE org_id = ?", id).Scan(&o.artifacts); err != nil {
		return o, fmt.Errorf("count artifacts: %w", err)
	}
	if o.exceptions, err = countOf(conn, "exceptions", id); err != nil {
		return o, err
	}
	if o.merges, err = countOf(conn, "merges", id); err != nil {
		return o, err
	}
	if o.records, err = countOf(conn, "change_records", id); err != nil {
		return o, err
	}

	o.logs, err = sqldb.All(conn, scanLog, `
SELECT id, epoch, first_seq, origin, vkey, size, checkpoint FROM logs WHERE org_id = ? ORDER BY epoch`, id)
	if err != nil {
		return o, fmt.Errorf("read logs: %w", err)
	}
	for i, l := range o.logs {
		l.end = o.end
		if i+1 < len(o.logs) {
			l.end = o.logs[i+1].first
		}
		l.tiled = l.leaves()
		if l.id == o.log && o.built != isBuilt {
			l.tiled = min(o.built-o.built%proof.TileWidth, l.tiled)
		}
		if err := l.readTiles(conn); err != nil {
			return o, fmt.Errorf("read tiles: %w", err)
		}
	}
	return o, nil
}

func scanID(row sqldb.Scanner) (id int64, err error) { return id, row.Scan(&id) }

func scanLog(row sqldb.Scanner) (*orgLog, error) {
	var l orgLog
	var checkpoint string
	err := row.Scan(&l.id, &l.epoch, &l.first, &l.origin, &l.vkey, &l.size, &checkpoint)
	l.checkpoint = []byte(checkpoint)
	return &l, err
}

// readTiles counts the tiles, and reads those that are not full.
func (l *orgLog) readTiles(conn *sqldb.Conn) (err error) {
	l.stored, err = sqldb.All(conn, func(row sqldb.Scanner) (v level, err error) {
		return v, row.Scan(&v.level, &v.tiles, &v.last)
	}, "SELECT level, count(*), max(n) FROM tiles WHERE log_id = ? GROUP BY level ORDER BY level", l.id)
	if err != nil {
		return err
	}
	l.partial = make(map[int][]byte)
	for level := 1; l.tiled>>(level*proof.TileHeight) > 0; level++ {
		hashes, err := readTile(conn, l.id, level, l.tiled>>((level+1)*proof.TileHeight))
		if err != nil {
			return err
		}
		l.partial[level] = hashes
	}
	return nil
}

// readTile reads the stored hashes of a tile: none if it is not stored.
func readTile(conn *sqldb.Conn, log int64, level int, n int64) (hashes []byte, err error) {
	err = conn.Each(func(row sqldb.Scanner) error { return row.Scan(&hashes) },
		"SELECT hashes FROM tiles WHERE log_id = ? AND level = ? AND n = ?", log, level, n)
	return hashes, err
}

// checkRows checks what the rows of an org and its logs say of each other, without the events.
func (c *checker) checkRows(o *org) {
	if o.outside > 0 {
		c.Problemf(verify.CheckEvents, o.name, "", "%d events are not numbered from 0 to %d", o.outside, o.end-1)
	}
	if o.listed > 0 {
		c.Problemf("audit", o.name, "", "%d administrative actions or violations are listed whose events do not exist",
			o.listed)
	}

	if len(o.logs) == 0 || o.logs[len(o.logs)-1].id != o.log || o.logs[len(o.logs)-1].first != o.first {
		c.Problemf("log", o.name, "", "the org's present log is row %d from event %d, which is not its newest log", o.log,
			o.first)
	}
	for i, l := range o.logs {
		// Numbers are left out if the keys of logs know them from another database.
		if l.first < 0 || l.leaves() < 0 || i == 0 && (l.first != 0 || l.epoch != 1) {
			c.Problemf("log", o.name, l.row(), "it is number %d of the org's logs, and has the events from %d to %d", i+1,
				l.first, l.end-1)
		}
		c.checkLevels(o.name, l)
		c.checkStored(o.name, l)
		c.checkSeen(o.name, l, i == len(o.logs)-1)
		slices.SortStableFunc(l.anchors, func(a, b anchor) int { return int(min(max(a.size-b.size, -1), 1)) })
	}
}

// checkLevels checks that a log has the tiles that its size demands, and no others.
func (c *checker) checkLevels(org string, l *orgLog) {
	var want []level
	for n, tiles := int64(0), l.tiled/proof.TileWidth; tiles > 0; n++ {
		want = append(want, level{n, tiles, tiles - 1})
		tiles = (l.tiled>>((n+1)*proof.TileHeight) + proof.TileWidth - 1) / proof.TileWidth
	}
	if !slices.Equal(l.stored, want) {
		c.Problemf("tile", org, l.row(), "%d events have the tiles %s, want %s (each: level, number, last)", l.tiled,
			fmt.Sprint(l.stored), fmt.Sprint(want))
	}
}

// checkStored checks the newest checkpoint in the database.
func (c *checker) checkStored(org string, l *orgLog) {
	if l.size == 0 && len(l.checkpoint) == 0 {
		if l.leaves() > 0 {
			c.Uncheckedf("%s: the %s has no checkpoint: without base_url, the server signs none", org, l.row())
		}
		return
	}
	verifier, err := note.NewVerifier(l.vkey)
	if err != nil {
		c.Problemf(verify.CheckCheckpoint, org, l.row(), "the key %q is not a verifier key: %v", l.vkey, err)
		return
	}
	checkpoint, err := proof.OpenCheckpoint(l.checkpoint, verifier)
	if err != nil {
		c.Problemf(verify.CheckCheckpoint, org, l.row(), "the stored checkpoint is not signed by the log's key: %v", err)
		return
	}

	if checkpoint.Origin != l.origin || checkpoint.Size != l.size {
		c.Problemf(verify.CheckCheckpoint, org, l.row(),
			"the stored checkpoint is of %s with %d events, and the log is %s with %d",
			checkpoint.Origin, checkpoint.Size, l.origin, l.size)
	}
	l.anchors = append(l.anchors, anchor{"the stored checkpoint", checkpoint.Size, checkpoint.Root})
}

// checkSeen checks the signatures of the checkpoints of a log that were kept elsewhere. The
// leaves are compared with them as they are read.
func (c *checker) checkSeen(org string, l *orgLog, isPresent bool) {
	for _, k := range c.seen {
		if k.origin != l.origin || l.origin == "" {
			continue
		}
		k.found = true
		if k.IsLast && !isPresent {
			continue
		}

		checkpoint, err := openAs(k.Signed, l.vkey)
		if err != nil {
			c.Problemf(verify.CheckCheckpoint, org, l.row(), "%s is not signed by the log's key in the database: %v", k.What,
				err)
			continue
		}
		l.anchors = append(l.anchors, anchor{k.What, checkpoint.Size, checkpoint.Root})
	}
}

func openAs(signed []byte, vkey string) (c proof.Checkpoint, err error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return c, err
	}
	return proof.OpenCheckpoint(signed, verifier)
}

// countOf counts the exceptions, claims of merges or change records of an org.
func countOf(conn *sqldb.Conn, table string, org int64) (n int64, err error) {
	err = conn.Row(`
SELECT count(*) FROM `+table+` x /*+ordered*/ JOIN attestations a ON a.id = x.attestation_id
  /*+ordered*/ JOIN repos r ON r.id = a.repo_id WHERE r.org_id = ?`, org).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", table, err)
	}
	return n, nil
}
