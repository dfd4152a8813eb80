package events

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A ReceiptKey is a key of receipts that the present log of an org announces.
type ReceiptKey struct {
	// Key is the hex SHA-256 of PublicKey, which is a DER SubjectPublicKeyInfo.
	Key       string
	PublicKey []byte
	// NotBefore and NotAfter limit when it signs.
	NotBefore, NotAfter ledger.Time
	event               string
}

// maxReceiptKeys is how many keys of receipts of a log are listed. Each server with the database
// has its own, and needs a new one if it is not in the list.
const maxReceiptKeys = 1000

// ReceiptKeys lists the keys of receipts that an org's present log announces and that have
// not expired: those that expire last, first.
func (j *Journal) ReceiptKeys(ctx context.Context, org string) ([]ReceiptKey, error) {
	keys, err := txn.ReadLoose(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) ([]ReceiptKey, error) {
		return sqldb.All(rd.Conn, scanReceiptKey, `
SELECT k.key, k.public_key, k.not_before, k.not_after, k.event_id
FROM orgs o /*+ordered*/ JOIN receipt_keys k ON k.log_id = o.log_id
WHERE o.name = ? AND k.not_after > ? ORDER BY k.not_after DESC LIMIT ?`, org, rd.Now, maxReceiptKeys)
	})
	if err != nil {
		return nil, fmt.Errorf("list the keys of receipts: %w", err)
	}
	return keys, nil
}

func scanReceiptKey(row txn.Scanner) (k ReceiptKey, err error) {
	return k, row.Scan(&k.Key, &k.PublicKey, &k.NotBefore, &k.NotAfter, &k.event)
}

// AnnounceReceiptKey logs a key of receipts in an org's log of an epoch, which must be the
// present one.
func (j *Journal) AnnounceReceiptKey(ctx context.Context, org string, epoch int, k ReceiptKey) error {
	return j.db.Change(ctx, org, func(t *txn.Tx) error {
		l, err := FindLog(t.Reader, org, 0)
		if err != nil {
			return err
		}
		if l.Epoch != epoch {
			return fmt.Errorf("announce a key of receipts: the log of %s is in epoch %d, not %d", org, l.Epoch, epoch)
		}
		event, err := j.AppendKey(t, l.OrgID, ledger.KeyEvent{
			Action: ledger.KeyAdded, Purpose: ledger.KeyOfReceipts, Key: k.Key, PublicKey: k.PublicKey,
			NotBefore: k.NotBefore, NotAfter: k.NotAfter,
		})
		if err != nil {
			return err
		}
		_, err = t.Exec(`
INSERT INTO receipt_keys (log_id, not_after, key, not_before, public_key, event_id) VALUES (?, ?, ?, ?, ?, ?)`,
			l.ID, k.NotAfter, k.Key, k.NotBefore, k.PublicKey, event)
		if err != nil {
			return fmt.Errorf("insert a key of receipts: %w", err)
		}
		return nil
	})
}

// An Announcement is the event that announces a key of receipts, and the proof that it is in
// the log.
type Announcement struct{ Event, Proof []byte }

// Announcement returns the event that announces a key of receipts. It returns
// CodeNotInCheckpoint if no checkpoint covers it yet.
func (j *Journal) Announcement(ctx context.Context, org string, k ReceiptKey) (a Announcement, err error) {
	return txn.Read(ctx, j.db, txn.ByOrg(org), func(rd txn.Reader) (a Announcement, err error) {
		orgID, err := rd.OrgID(org)
		if err != nil {
			return a, err
		}
		ref, err := Find(rd, orgID, k.event)
		if err != nil {
			return a, txn.Missing(err, "event %s not found", k.event)
		}
		p, err := j.Prove(rd, org, ref)
		if err != nil {
			return a, err
		}
		a.Proof = p.Format()
		return a, rd.Row("SELECT body FROM events WHERE id = ?", ref.Row).Scan(&a.Event)
	})
}
