package check

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/parallel"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A page is the events of a tile of level 0, with the stored tile.
type page struct {
	log      *orgLog
	from, to int64 // seq
	events   []*event
	tile     []byte             // the stored one
	audits   map[int64]auditRow // by seq
	listed   map[int64]listedEvent
}

// events checks the events, leaves and tiles of all orgs.
func (c *checker) events(ctx context.Context) error {
	var done, total int64
	err := c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Row("SELECT coalesce(sum(next_seq), 0) FROM orgs").Scan(&total)
	})
	if err != nil {
		return err
	}

	for after := int64(0); ; {
		ids, err := c.nextOrgs(ctx, after)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			err := c.org(ctx, id, func(events int64) {
				done += events
				c.step("events", done, total)
			})
			if err := c.Tolerate(ctx, fmt.Sprintf("the events of org %d", id), err); err != nil {
				return err
			}
		}
		after = ids[len(ids)-1]
	}
}

// org checks the events, leaves and tiles of an org. It calls step after each page.
func (c *checker) org(ctx context.Context, id int64, step func(events int64)) error {
	if err := c.ask(ctx, id); err != nil {
		return err
	}
	var o *org
	err := c.Read(ctx, func(conn *sqldb.Conn) (err error) {
		o, err = c.readOrg(conn, id)
		return err
	})
	if err != nil {
		return err
	}
	c.Count(func(r *report.Report) *int64 { return &r.Orgs }, 1)
	c.checkRows(o)

	for _, l := range o.logs {
		c.compare(o.name, l) // with a checkpoint of size 0
		next := l.first
		err := ahead(ctx, func(ctx context.Context) (page, bool, error) {
			p := page{log: l, from: next, to: min(next+proof.TileWidth, l.end)}
			if p.from >= p.to {
				return p, false, nil
			}
			next = p.to
			return p, true, c.readPage(ctx, o, &p)
		}, func(p page) error {
			c.eachEvent(o, p.events)
			c.audits(o.name, p.events, p.audits)
			c.violationEvents(o.name, p.events, p.listed)
			if err := c.links(ctx, o, p.events); err != nil {
				return err
			}
			if err := c.statements(ctx, o, p.events); err != nil {
				return err
			}
			err := c.follow(ctx, o, p)
			c.Count(func(r *report.Report) *int64 { return &r.Events }, int64(len(p.events)))
			step(p.to - p.from)
			return err
		})
		if err != nil {
			return err
		}
		c.finish(o.name, l)
	}
	c.Count(func(r *report.Report) *int64 { return &r.Attestations }, o.matched)
	if o.attestations != o.matched {
		c.Problemf(verify.CheckAttestations, o.name, "", "there are %d attestations, and %d of them have an event",
			o.attestations, o.matched)
	}
	if err := c.countLinks(ctx, o); err != nil {
		return err
	}
	if err := c.countStatements(ctx, o); err != nil {
		return err
	}
	if err := c.replacedClaims(ctx, o); err != nil {
		return err
	}
	return c.rest(ctx, o)
}

// rest checks what the events of an org led to.
func (c *checker) rest(ctx context.Context, o *org) error {
	for _, p := range []struct {
		name  string
		check func(context.Context) error
	}{
		{"identities", o.signers.Check}, {"keys of receipts", o.receiptKeys},
		{"access and settings", func(ctx context.Context) error { return c.settings(ctx, o) }},
		{"members", func(ctx context.Context) error { return c.members(ctx, o) }},
		{"repos", func(ctx context.Context) error {
			return o.derived.Check(ctx, func(done, total int) {
				c.step("commits of the repos of "+o.name, int64(done), int64(total))
			})
		}},
		{"keys", o.signers.CheckClaims},
	} {
		if err := c.Tolerate(ctx, p.name+" of "+o.name, p.check(ctx)); err != nil {
			return fmt.Errorf("check %s: %w", p.name, err)
		}
	}
	return nil
}

// readPage reads a page in one snapshot.
func (c *checker) readPage(ctx context.Context, o *org, p *page) error {
	return c.Read(ctx, func(conn *sqldb.Conn) (err error) {
		if p.events, err = sqldb.All(conn, scanEvent, selectEvents, o.id, p.from, p.to); err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if p.audits, err = readAudits(conn, o.id, p.from, p.to); err != nil {
			return err
		}
		if p.listed, err = readViolationEvents(conn, o.id, p.from, p.to); err != nil {
			return err
		}
		if p.tile, err = readTile(conn, p.log.id, 0, (p.from-p.log.first)/proof.TileWidth); err != nil {
			return err
		}
		return c.readEvidence(conn, p.events, func(events []*event) { c.eachEvent(o, events) })
	})
}

// eachEvent checks each event on its own, unless that is done.
func (c *checker) eachEvent(o *org, events []*event) {
	parallel.Share(events, func(e *event) {
		if e.isChecked {
			return
		}
		e.isChecked = true
		c.event(o.name, e)
		if e.kind == ledger.EventAttestation {
			c.evidence(o.name, e)
		}
	})
}

// follow adds the leaves of a page to the tree of the log. It checks that the events are
// numbered without gaps in the order in which they were recorded.
func (c *checker) follow(ctx context.Context, o *org, p page) error {
	l, rest := p.log, p.events
	for seq := p.from; seq < p.to; {
		if len(rest) == 0 || rest[0].seq > seq {
			upTo := p.to
			if len(rest) > 0 {
				upTo = rest[0].seq
			}
			c.Problemf(verify.CheckEvents, o.name, eventRange(seq, upTo), "missing")
			for ; seq < upTo; seq++ {
				if err := c.addLeaf(ctx, o.name, p, seq, nil); err != nil {
					return err
				}
			}
			continue
		}

		e := rest[0]
		rest = rest[1:]
		if e.id <= o.lastRow {
			c.Problemf(verify.CheckEvents, o.name, e.row(), "it was recorded before the event with the number before")
		}
		o.lastRow = e.id
		if e.evidence != nil {
			o.matched++
		}
		if err := c.history(ctx, o, e); err != nil {
			return err
		}
		o.signers.Add(e.seq, e.kind, e.said)
		if a := e.evidence; a != nil {
			o.signers.Sign(a.dn, a.key, a.emails)
		}
		o.derived.Add(e.repoID, e.kind, e.said)
		c.addSettings(o, e)
		var hash *tlog.Hash
		if e.leaf != nil {
			hash = &e.hash
		} else if !l.isBuilding() {
			c.Problemf(verify.CheckBody, o.name, e.row(), "it has no leaf")
		}
		if err := c.addLeaf(ctx, o.name, p, seq, hash); err != nil {
			return err
		}
		seq++
	}
	return nil
}

// addLeaf adds a leaf to the tree. If the hash is not known, it takes that of the stored tile;
// without one, the tree ends.
func (c *checker) addLeaf(ctx context.Context, org string, p page, seq int64, hash *tlog.Hash) error {
	l := p.log
	if l.stopped {
		return nil
	}
	if at := (seq - p.from) * tlog.HashSize; hash == nil && at+tlog.HashSize <= int64(len(p.tile)) {
		hash = (*tlog.Hash)(p.tile[at:])
	}
	if hash == nil {
		l.stopped = true
		if l.isBuilding() {
			c.Uncheckedf("%s: the %s is being built: %d of %d leaves are done", org, l.row(), l.tree.Size(), l.leaves())
		}
		return nil
	}

	err := l.tree.Add(*hash, func(t proof.Tile, hashes []byte) error {
		stored := p.tile
		if t.Level > 0 {
			err := c.Read(ctx, func(conn *sqldb.Conn) (err error) {
				stored, err = readTile(conn, l.id, t.Level, t.N)
				return err
			})
			if err != nil {
				return fmt.Errorf("read tile %s: %w", t.Path(), err)
			}
		}
		if (t.N+1)<<((t.Level+1)*proof.TileHeight) <= l.tiled {
			c.checkTile(org, l, t, stored, hashes)
		}
		return nil
	})
	c.compare(org, l)
	return err
}

// checkTile checks that a stored tile has the hashes of the leaves.
func (c *checker) checkTile(org string, l *orgLog, t proof.Tile, stored, want []byte) {
	c.Count(func(r *report.Report) *int64 { return &r.Tiles }, 1)
	if bytes.Equal(stored, want) {
		return
	}
	if len(stored) != len(want) {
		c.Problemf("tile", org, l.tileRow(t), "it has %d bytes, want %d", len(stored), len(want))
		return
	}
	first, differ := int64(-1), 0
	for i := 0; i < len(want); i += tlog.HashSize {
		if !bytes.Equal(stored[i:i+tlog.HashSize], want[i:i+tlog.HashSize]) {
			if differ++; first < 0 {
				first = int64(i / tlog.HashSize)
			}
		}
	}

	span := int64(1) << (t.Level * proof.TileHeight)
	from := l.first + (t.N*proof.TileWidth+first)*span
	c.Problemf("tile", org, l.tileRow(t), "%d hashes are not those of the leaves: the first is that of %s", differ,
		eventRange(from, from+span))
}

// compare compares the root of the leaves so far with the known checkpoints of this size.
func (c *checker) compare(org string, l *orgLog) {
	for ; len(l.anchors) > 0 && l.anchors[0].size == l.tree.Size(); l.anchors = l.anchors[1:] {
		a := l.anchors[0]
		if root := l.tree.Root(); root != a.root {
			c.Problemf(verify.CheckCheckpoint, org, l.row(),
				"%s says that the first %d events have the root %s, and they have %s", a.what, a.size, a.root, root)
		}
	}
}

// finish checks what is left at the end of a log: tiles that are not full, and checkpoints of
// more events than there are.
func (c *checker) finish(org string, l *orgLog) {
	for level := 1; !l.isBuilding() && !l.stopped && level <= len(l.partial); level++ {
		want := l.tree.Partial(level)
		t := proof.Tile{Level: level, N: l.tiled >> ((level + 1) * proof.TileHeight), Width: len(want) / tlog.HashSize}
		if len(want)+len(l.partial[level]) > 0 {
			c.checkTile(org, l, t, l.partial[level], want)
		}
	}
	for _, a := range l.anchors {
		if a.size > l.leaves() {
			c.Problemf(verify.CheckCheckpoint, org, l.row(),
				"%s has %d events, and the database only %d: events were deleted, or the "+
					"database is older", a.what, a.size, l.leaves())
		} else if !l.isBuilding() {
			c.Problemf(verify.CheckCheckpoint, org, l.row(), "%s of %d events cannot be compared, because leaves are missing",
				a.what, a.size)
		}
	}
}
