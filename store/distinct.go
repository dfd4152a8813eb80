package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/txn"
)

// logIdentitiesBatch is the number of identities or signers that one write logs.
const logIdentitiesBatch = 50

// Why a signer is somebody else than all others with the same names: values of the column distinct_by.
const (
	distinctByAdmin    = 1
	distinctByUpgrade  = 2 // they counted as two people before a release that counts them once
	distinctToBeLogged = 3 // the same, and it is not logged yet
)

// setDistinct stores and logs whether a signer is somebody else than all others with the same names.
// id is that of the identity or member by which an administrator has changed it. The commits of the
// org are derived again if people become one, or are no longer.
func (t *tx) setDistinct(orgID int64, org, id, dn string, distinct bool) error {
	parsed, err := identity.ParseDN(dn)
	if err != nil {
		return fmt.Errorf("parse the DN of a signer: %w", err)
	}
	signerID, person, err := t.personOfName(orgID, dn, parsed)
	if err != nil {
		return err
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: id}
	if _, err := t.nameSigner(orgID, signerID, person, parsed.CN, "", cause); err != nil {
		return err
	}

	by := 0
	if distinct {
		by = distinctByAdmin
	}
	said, err := t.Exec("UPDATE signers SET distinct_by = ?1 WHERE id = ?2 AND distinct_by <> ?1", by, signerID)
	if err != nil {
		return fmt.Errorf("note that a signer is distinct: %w", err)
	}
	if said == 0 {
		return nil
	}
	if err := t.logDistinct(orgID, org, dn, distinct, ledger.IdentityChanged); err != nil {
		return err
	}
	changed, err := t.regroup(orgID, 0)
	if err != nil || !changed {
		return err
	}
	return t.s.jobs.SettleOrg(t.kernel, orgID, cause)
}

// logDistinct appends the event that says whether a signer is distinct.
func (t *tx) logDistinct(orgID int64, org, dn string, distinct bool, action ledger.IdentityAction) error {
	id, err := t.kernel.NewID(orgID, txn.EventPrefix)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(dn))
	return t.s.Journal.AppendToOrg(t.kernel, orgID, ledger.EventIdentity, id, ledger.Render(ledger.IdentityEvent{
		ID: id, Org: org, Action: action, IdentityID: dn, Kind: ledger.KindSigner, DN: dn, Key: hex.EncodeToString(digest[:]),
		Distinct: distinct, Timestamp: t.Now,
	}))
}

// An unloggedSigner is a signer whom the log does not call distinct yet.
type unloggedSigner struct {
	id, orgID int64
	org, dn   string
}

// logDistincts logs the signers who counted as two people before a release that counts them once.
func (s *Store) logDistincts(ctx context.Context) error {
	for {
		list, err := readLoose(ctx, s, txn.ForWrite(""), func(rd reader) ([]unloggedSigner, error) {
			return all(rd, func(row txn.Scanner) (u unloggedSigner, err error) {
				return u, row.Scan(&u.id, &u.orgID, &u.org, &u.dn)
			}, `
SELECT s.id, s.org_id, o.name, s.dn FROM signers s /*+index signers_to_log*/ /*+ordered*/ JOIN orgs o ON o.id = s.org_id
WHERE s.distinct_by = 3 ORDER BY s.id LIMIT ?`, logIdentitiesBatch)
		})
		if err != nil || len(list) == 0 {
			return err
		}
		_, err = writeYielding(ctx, s, nil, func(t *tx) (struct{}, error) { return struct{}{}, t.logUnlogged(list) })
		if err != nil {
			return err
		}
	}
}

// logUnlogged logs distinct signers, unless they were logged since they were read.
func (t *tx) logUnlogged(list []unloggedSigner) error {
	for _, u := range list {
		changed, err := t.Exec("UPDATE signers SET distinct_by = ? WHERE id = ? AND distinct_by = ?", distinctByUpgrade,
			u.id, distinctToBeLogged)
		if err != nil {
			return fmt.Errorf("note that a signer is logged: %w", err)
		}
		if changed == 0 {
			continue
		}
		if err := t.logDistinct(u.orgID, u.org, u.dn, true, ledger.IdentityKnown); err != nil {
			return err
		}
	}
	return nil
}
