package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
)

// BeginEpoch ends a log, which must be the present one of its org, and begins the log of a
// later epoch. The first leaf of the new log is the event. In its Previous, size and root
// become those of all events of the old log, and the origin too if it has one. It returns
// the event's ID.
func (s *Store) BeginEpoch(ctx context.Context, l Log, epoch int, e ledger.KeyEvent) (eventID string, err error) {
	if epoch <= l.Epoch {
		return "", fmt.Errorf("begin epoch %d of the log of %s: it has epoch %d", epoch, l.Org, l.Epoch)
	}
	return write(ctx, s, l.Org, func(t *tx) (string, error) { return t.beginEpoch(l, epoch, e) })
}

func (t *tx) beginEpoch(l Log, epoch int, e ledger.KeyEvent) (eventID string, err error) {
	first, err := t.nextSeq(l.orgID)
	if err != nil {
		return "", err
	}
	head := t.batch.heads[l.orgID]
	if head.log != l.id {
		return "", fmt.Errorf("the log of %s has changed: another command has begun a new epoch", l.Org)
	}
	if err := fillTiles(t.Conn, l.orgID, head, first); err != nil {
		return "", err
	}
	previous, err := t.lastOf(l, first)
	if err != nil {
		return "", err
	}
	previous.Origin = cmp.Or(previous.Origin, e.Previous.Origin)
	previous.Checkpoint = e.Previous.Checkpoint
	e.Previous = &previous

	if head, err = t.beginLog(l.orgID, epoch, first); err != nil {
		return "", err
	}
	t.gathered.began = append(t.gathered.began, begun{l.orgID, head})
	if eventID, err = t.keyEvent(l.orgID, e); err != nil {
		return "", err
	}
	return eventID, t.audit(l.orgID, l.Org, audited{
		action: ledger.AuditLogReplaced, target: l.Org,
		before: []ledger.Field{{Name: "epoch", Value: l.Epoch}, {Name: "reason"}},
		after:  []ledger.Field{{Name: "epoch", Value: epoch}, {Name: "reason", Value: optional(e.Reason)}},
	})
}

// lastOf returns what the database has of a log that ends before the event with the seq next.
// There is no root if leaves are missing.
func (t *tx) lastOf(l Log, next int64) (p ledger.PreviousLog, err error) {
	l.Leaves = next - l.FirstSeq
	rd := t.reader
	rd.caches = &caches{tiles: txn.NewCache[tileKey, []byte](maxTiles)} // the leaves of this write may be rolled back
	root, err := rd.root(l, l.Leaves)
	p = ledger.PreviousLog{Origin: l.Origin, Size: l.Leaves, Root: base64.StdEncoding.EncodeToString(root[:])}
	if errors.Is(err, errIncomplete) {
		p.Root, err = "", nil
	}
	return p, err
}
