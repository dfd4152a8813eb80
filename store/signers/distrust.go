package signers

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// DistrustIdentity revokes an identity, if it is not revoked, and makes evidence by it that
// was recorded since a time not count. The time may be made earlier, but not later.
func (sg *Signers) DistrustIdentity(ctx context.Context, org, id string, since ledger.Time) error {
	return sg.db.Change(ctx, org, func(t *txn.Tx) error {
		i, err := FindIdentity(t.Reader, org, id)
		if err != nil {
			return err
		}
		if err := checkSince(i.Row, since, t.Now); err != nil || since == i.Row.DistrustedSince {
			return err
		}

		orgID, err := t.OrgID(org)
		if err != nil {
			return err
		}
		before := i.Row
		if i.Row.RevokedAt == 0 {
			if err := markRevoked(t, orgID, i.ID); err != nil {
				return err
			}
			i.Row.RevokedAt = t.Now
		}
		if err := sg.distrust(t, orgID, i, since); err != nil {
			return err
		}
		i.Row.DistrustedSince = since
		_, err = sg.logIdentity(t, orgID, before, i, ledger.IdentityDistrusted)
		return err
	})
}

// checkSince returns an error if an identity cannot be distrusted since a time.
func checkSince(i identity.Identity, since, now ledger.Time) error {
	if since > now {
		return ledger.FieldErrorf(ledger.CodeInvalidParameter, "since",
			"%s is still to come: give the time from which on the key may have been used by somebody else", since)
	}
	if before := i.DistrustedSince; before != 0 && since > before {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "since",
			"evidence by %s does not count since %s, and distrust cannot be taken back: give an earlier time", i.ID, before)
	}
	return nil
}

// distrust notes that evidence by a revoked identity does not count since a time, and plans
// the background work: the table latest is put right, and all states are derived again.
func (sg *Signers) distrust(t *txn.Tx, orgID int64, i txn.Keyed[identity.Identity], since ledger.Time) error {
	if _, err := t.Exec("UPDATE identities SET distrusted_since = ? WHERE id = ?", since, i.ID); err != nil {
		return fmt.Errorf("distrust identity: %w", err)
	}
	_, err := t.Exec(`
UPDATE orgs SET distrusts = distrusts + 1,
  distrusting = CASE WHEN EXISTS (SELECT 1 FROM repos WHERE org_id = orgs.id) THEN 1 ELSE 0 END WHERE id = ?`, orgID)
	if err != nil {
		return fmt.Errorf("distrust identity: %w", err)
	}
	cause := ledger.Cause{Type: ledger.CauseIdentity, ID: i.Row.ID}
	if err := sg.jobs.LaterFor(t, "FROM repos WHERE org_id = ?", backlog.Distrust, i.ID, cause,
		orgID); err != nil {
		return err
	}
	return sg.jobs.SettleOrg(t, orgID, cause)
}
