package events

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// BeginEpoch ends a log, which must be the present one of its org, and begins the log of a
// later epoch. The first leaf of the new log is the event. In its Previous, size and root
// become those of all events of the old log, and the origin too if it has one. It returns
// the event's ID.
func (j *Journal) BeginEpoch(ctx context.Context, l Log, epoch int, e ledger.KeyEvent) (eventID string, err error) {
	if epoch <= l.Epoch {
		return "", fmt.Errorf("begin epoch %d of the log of %s: it has epoch %d", epoch, l.Org, l.Epoch)
	}
	return txn.Write(ctx, j.db, sqldb.Write{Org: l.Org}, func(t *txn.Tx) (string, error) {
		return j.StartEpoch(t, l, epoch, e)
	})
}

// StartEpoch is BeginEpoch within a write.
func (j *Journal) StartEpoch(t *txn.Tx, l Log, epoch int, e ledger.KeyEvent) (eventID string, err error) {
	first, err := j.NextSeq(t, l.OrgID)
	if err != nil {
		return "", err
	}
	head := j.heads[l.OrgID]
	if head.log != l.ID {
		return "", fmt.Errorf("the log of %s has changed: another command has begun a new epoch", l.Org)
	}
	if err := fillTiles(t.Conn, l.OrgID, head, first); err != nil {
		return "", err
	}
	previous, err := lastOf(t, l, first)
	if err != nil {
		return "", err
	}
	previous.Origin = cmp.Or(previous.Origin, e.Previous.Origin)
	previous.Checkpoint = e.Previous.Checkpoint
	e.Previous = &previous

	if head, err = BeginLog(t, l.OrgID, epoch, first); err != nil {
		return "", err
	}
	j.left.began = append(j.left.began, begun{l.OrgID, head})
	if eventID, err = j.AppendKey(t, l.OrgID, e); err != nil {
		return "", err
	}
	return eventID, j.Audit(t, l.OrgID, l.Org, Audited{
		Action: ledger.AuditLogReplaced, Target: l.Org,
		Before: []ledger.Field{{Name: "epoch", Value: l.Epoch}, {Name: "reason"}},
		After:  []ledger.Field{{Name: "epoch", Value: epoch}, {Name: "reason", Value: Optional(e.Reason)}},
	})
}

// lastOf returns what the database has of a log that ends before the event with the seq next.
// There is no root if leaves are missing.
func lastOf(t *txn.Tx, l Log, next int64) (p ledger.PreviousLog, err error) {
	l.Leaves = next - l.FirstSeq
	apart := &Journal{tiles: newTileCache()} // the leaves of this write may be rolled back
	root, err := apart.root(t.Reader, l, l.Leaves)
	p = ledger.PreviousLog{Origin: l.Origin, Size: l.Leaves, Root: base64.StdEncoding.EncodeToString(root[:])}
	if errors.Is(err, ErrIncomplete) {
		p.Root, err = "", nil
	}
	return p, err
}
