package signers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// caInUse returns the row id of the CA of a purpose that an org has in use, and its root. The root may be
// revoked. Without a CA, the error is CodeNotFound.
func caInUse(rd txn.Reader, org string, p ca.Purpose) (id int64, root txn.Keyed[identity.Identity], err error) {
	orgID, err := rd.OrgID(org)
	if err != nil {
		return 0, root, err
	}
	var rootID string
	err = rd.Row("SELECT id, identity_id FROM cas WHERE org_id = ? AND purpose = ? AND retired_at = 0", orgID, string(p)).
		Scan(&id, &rootID)
	if err != nil {
		return 0, root, txn.Missing(err, "org %s has no CA for %s (create one with 'ledgerd identity %s create')", org,
			p.Holders(), p.Name())
	}
	root, err = FindIdentity(rd, org, rootID)
	return id, root, err
}

// CA returns the root of the CA of a purpose that an org has in use. The root may be revoked. It
// returns CodeNotFound if the org has no such CA.
func (sg *Signers) CA(ctx context.Context, org string, p ca.Purpose) (identity.Identity, error) {
	return txn.Read(ctx, sg.db, txn.ByOrg(org), func(rd txn.Reader) (identity.Identity, error) {
		_, root, err := caInUse(rd, org, p)
		return root.Row, err
	})
}

// CheckNoCA returns CodeAlreadyExists if an org has a CA of a purpose in use whose root is not
// revoked.
func (sg *Signers) CheckNoCA(ctx context.Context, org string, p ca.Purpose) error {
	_, err := txn.Read(ctx, sg.db, txn.ByOrg(org), func(rd txn.Reader) (struct{}, error) {
		return struct{}{}, checkNoCA(rd, org, p)
	})
	return err
}

func checkNoCA(rd txn.Reader, org string, p ca.Purpose) error {
	_, root, err := caInUse(rd, org, p)
	switch {
	case txn.IsCode(err, ledger.CodeNotFound):
		_, err = rd.OrgID(org)
		return err
	case err == nil && root.Row.RevokedAt == 0:
		return ledger.Errorf(ledger.CodeAlreadyExists,
			"org %s has the CA %s (replace it with 'ledgerd identity %s rotate')", org, root.Row.ID, p.Name())
	}
	return err
}

// CreateCA adds the root of a new CA to an org's keyring, and puts the CA in use. Unless replace
// is set, it returns the errors of CheckNoCA. The root of a CA that is replaced stays trusted.
func (sg *Signers) CreateCA(
	ctx context.Context, org string, p ca.Purpose, n identity.Identity, replace bool,
) (identity.Identity, error) {
	return txn.Write(ctx, sg.db, sqldb.Write{Org: org}, func(t *txn.Tx) (added identity.Identity, err error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return added, err
		}
		if !replace {
			if err := checkNoCA(t.Reader, org, p); err != nil {
				return added, err
			}
		}
		former, root, err := caInUse(t.Reader, org, p)
		if err == nil {
			err = sg.retireCA(t, orgID, former, root.Row)
		}
		if err != nil && !txn.IsCode(err, ledger.CodeNotFound) {
			return added, err
		}

		if added, err = sg.addIdentity(t, org, orgID, n); err != nil {
			return added, err
		}
		_, err = t.Exec("INSERT INTO cas (org_id, purpose, identity_id, created_at) VALUES (?, ?, ?, ?)",
			orgID, string(p), added.ID, t.Now)
		if err != nil {
			return added, fmt.Errorf("insert CA: %w", err)
		}
		return added, sg.logCA(t, orgID, ledger.KeyAdded, added)
	})
}

// RetireCA ends the CA of a purpose of an org, and revokes its root.
func (sg *Signers) RetireCA(ctx context.Context, org string, p ca.Purpose) error {
	return sg.db.Change(ctx, org, func(t *txn.Tx) error {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return err
		}
		id, root, err := caInUse(t.Reader, org, p)
		if err != nil {
			return err
		}
		if err := sg.retireCA(t, orgID, id, root.Row); err != nil {
			return err
		}
		return sg.Revoke(t, org, root)
	})
}

// retireCA ends the CA with a row id. Its root stays as it is.
func (sg *Signers) retireCA(t *txn.Tx, orgID, id int64, root identity.Identity) error {
	if _, err := t.Exec("UPDATE cas SET retired_at = ? WHERE id = ?", t.Now, id); err != nil {
		return fmt.Errorf("retire CA: %w", err)
	}
	return sg.logCA(t, orgID, ledger.KeyRevoked, root)
}

// logCA appends the event that a CA begins or ceases to issue certificates.
func (sg *Signers) logCA(t *txn.Tx, orgID int64, action ledger.KeyAction, root identity.Identity) error {
	block, _ := pem.Decode([]byte(root.PEM))
	if block == nil {
		return fmt.Errorf("log CA: identity %s has no certificate", root.ID)
	}
	digest := sha256.Sum256(block.Bytes)
	_, err := sg.journal.AppendKey(t, orgID, ledger.KeyEvent{
		Action: action, Purpose: ledger.KeyOfCA, Key: hex.EncodeToString(digest[:]), PublicKey: block.Bytes,
		NotAfter: root.NotAfter,
	})
	return err
}

// A Certificate is one that a CA of an org issues.
type Certificate struct {
	// CA is the ID of the CA's root.
	CA string
	// Serial is the serial number in hex, and Key the SHA-256 of the DER SubjectPublicKeyInfo.
	Serial, Key string
	DN          string
	NotAfter    ledger.Time
}

// Fields returns the fields of a certificate that audit events have.
func (c Certificate) Fields() []ledger.Field {
	return []ledger.Field{
		{Name: "dn", Value: c.DN},
		{Name: "key", Value: c.Key},
		{Name: "not_after", Value: c.NotAfter},
		{Name: "ca", Value: c.CA},
	}
}

// CheckInUse returns CodeRevokedIdentity if an org no longer uses a CA with a root.
func CheckInUse(rd txn.Reader, org string, p ca.Purpose, rootID string) error {
	_, root, err := caInUse(rd, org, p)
	if err == nil && (root.Row.ID != rootID || root.Row.RevokedAt != 0) {
		err = ledger.Errorf(ledger.CodeRevokedIdentity, "the CA %s is no longer in use (try again)", rootID)
	}
	return err
}
