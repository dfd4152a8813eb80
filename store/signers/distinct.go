package signers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Why a signer is somebody else than all others with the same names: values of the column distinct_by.
const (
	DistinctByAdmin    = 1
	distinctByUpgrade  = 2 // they counted as two people before a release that counts them once
	distinctToBeLogged = 3 // the same, and it is not logged yet
)

// SetDistinct stores and logs whether a signer is somebody else than all others with the same names.
// id is that of the identity or member by which an administrator has changed it. The commits of the
// org are derived again if people become one, or are no longer.
func (sg *Signers) SetDistinct(t *txn.Tx, orgID int64, org, id, dn string, distinct bool) error {
	parsed, err := identity.ParseDN(dn)
	if err != nil {
		return fmt.Errorf("parse the DN of a signer: %w", err)
	}
	signerID, person, err := sg.personOfName(t, orgID, dn, parsed)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: id}
	if _, err := sg.nameSigner(t, orgID, signerID, person, parsed.CN, "", cause); err != nil {
		return err
	}

	by := 0
	if distinct {
		by = DistinctByAdmin
	}
	said, err := t.Exec("UPDATE signers SET distinct_by = ?1 WHERE id = ?2 AND distinct_by <> ?1", by, signerID)
	if err != nil {
		return fmt.Errorf("note that a signer is distinct: %w", err)
	}
	if said == 0 {
		return nil
	}
	if err := sg.logDistinct(t, orgID, org, dn, distinct, ledger.IdentityChanged); err != nil {
		return err
	}
	changed, err := sg.regroup(t, orgID, 0)
	if err != nil || !changed {
		return err
	}
	return sg.jobs.SettleOrg(t, orgID, cause)
}

// logDistinct appends the event that says whether a signer is distinct.
func (sg *Signers) logDistinct(t *txn.Tx, orgID int64, org, dn string, distinct bool,
	action ledger.IdentityAction) error {
	id, err := t.NewID(orgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(dn))
	return sg.journal.AppendToOrg(t, orgID, ledger.EventIdentity, id, ledger.Render(ledger.IdentityEvent{
		ID: id, Org: org, Action: action, IdentityID: dn, Kind: ledger.KindSigner, DN: dn, Key: hex.EncodeToString(digest[:]),
		Distinct: distinct, Timestamp: t.Now,
	}))
}

// An unloggedSigner is a signer whom the log does not call distinct yet.
type unloggedSigner struct {
	id, orgID int64
	org, dn   string
}

// LogDistincts logs the signers who counted as two people before a release that counts them once.
func (sg *Signers) LogDistincts(ctx context.Context) error {
	for {
		list, err := txn.ReadLoose(ctx, sg.db, txn.ForWrite(""), func(rd txn.Reader) ([]unloggedSigner, error) {
			return txn.All(rd, func(row txn.Scanner) (u unloggedSigner, err error) {
				return u, row.Scan(&u.id, &u.orgID, &u.org, &u.dn)
			}, `
SELECT s.id, s.org_id, o.name, s.dn FROM signers s /*+index signers_to_log*/ /*+ordered*/ JOIN orgs o ON o.id = s.org_id
WHERE s.distinct_by = 3 ORDER BY s.id LIMIT ?`, logIdentitiesBatch)
		})
		if err != nil || len(list) == 0 {
			return err
		}
		_, err = txn.Write(ctx, sg.db, sqldb.Write{Yields: true, Owners: nil},
			func(t *txn.Tx) (struct{}, error) { return struct{}{}, sg.logUnlogged(t, list) })
		if err != nil {
			return err
		}
	}
}

// logUnlogged logs distinct signers, unless they were logged since they were read.
func (sg *Signers) logUnlogged(t *txn.Tx, list []unloggedSigner) error {
	for _, u := range list {
		changed, err := t.Exec("UPDATE signers SET distinct_by = ? WHERE id = ? AND distinct_by = ?", distinctByUpgrade,
			u.id, distinctToBeLogged)
		if err != nil {
			return fmt.Errorf("note that a signer is logged: %w", err)
		}
		if changed == 0 {
			continue
		}
		if err := sg.logDistinct(t, u.orgID, u.org, u.dn, true, ledger.IdentityKnown); err != nil {
			return err
		}
	}
	return nil
}
