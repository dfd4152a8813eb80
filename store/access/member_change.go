package access

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// ChangeMember changes a member. Tokens that permit more than the new role are revoked, and all
// tokens if the member is removed. These are the member's sign-ins, and the tokens that the member
// has created. If the member is removed, the keys end, too, as member.Change says. It returns
// CodeInvalidField if the member is to be restored, and the org may not use the provider.
func (ac *Access) ChangeMember(ctx context.Context, org, id string, c member.Change) (member.Member, error) {
	if err := c.Check(); err != nil {
		return member.Member{}, err
	}
	return txn.Write(ctx, ac.db, sqldb.Write{Org: org}, func(t *txn.Tx) (member.Member, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return member.Member{}, err
		}
		before, err := findMember(t.Reader, org, id)
		if err != nil {
			return before.Row, err
		}

		after := c.Apply(before.Row, t.Now)
		if before.Row.RemovedAt != 0 && after.RemovedAt == 0 {
			if err := checkProvider(t.Reader, ac.providers, orgID, org, after.Issuer); err != nil {
				return before.Row, err
			}
		}
		if c.Distinct != nil {
			if err := ac.signers.SetDistinct(t, orgID, org, after.ID, after.DN, after.Distinct); err != nil {
				return after, err
			}
		}
		if c.Removed != nil && *c.Removed {
			if err := ac.endKeys(t, orgID, before, c); err != nil {
				return after, err
			}
		}
		return after, ac.updateMember(t, org, before, after)
	})
}

// endKeys revokes the identities of a member who leaves, and removes the passkeys, unless c keeps
// them. It revokes those that c names, too.
func (ac *Access) endKeys(t *txn.Tx, orgID int64, m txn.Keyed[member.Member], c member.Change) error {
	for _, id := range c.Also {
		i, err := signers.FindIdentity(t.Reader, m.Row.Org, id)
		if err != nil {
			return err
		}
		if err := ac.signers.Revoke(t, m.Row.Org, i); err != nil {
			return err
		}
	}
	if c.KeepKeys {
		return nil
	}

	person, err := personOfDN(t, orgID, m.Row.DN)
	if err != nil {
		return err
	}
	identities, err := txn.All(t.Reader, signers.ScanIdentity, signers.SelectIdentity+`
WHERE i.org_id = ? AND i.revoked_at = 0 AND i.kind <> ? AND i.dn IN (
  SELECT s.dn FROM signers s WHERE s.org_id = ? AND s.person = ? AND s.person > 0) ORDER BY i.id`,
		orgID, identity.RootIdentity, orgID, person)
	if err != nil {
		return fmt.Errorf("read the identities of a member: %w", err)
	}
	for _, i := range identities {
		if err := ac.signers.Revoke(t, m.Row.Org, i); err != nil {
			return err
		}
	}

	passkeys, err := txn.All(t.Reader, scanPasskey, selectPasskey+
		"WHERE p.member_id = ? AND p.removed_at = 0 ORDER BY p.id",
		m.ID)
	if err != nil {
		return fmt.Errorf("read the passkeys of a member: %w", err)
	}
	for _, p := range passkeys {
		if err := ac.removePasskey(t, orgID, m.Row.Org, p); err != nil {
			return err
		}
	}
	return nil
}

// personOfDN returns the person with a DN, or 0 if nobody has signed or is registered with it.
func personOfDN(t *txn.Tx, orgID int64, dn string) (person int64, err error) {
	parsed, err := identity.ParseDN(dn)
	if err != nil {
		return 0, fmt.Errorf("parse the DN of a member: %w", err)
	}
	person, err = signers.PersonOfFold(t.Conn, orgID, parsed.Fold())
	if err != nil {
		return 0, fmt.Errorf("find the person of a DN: %w", err)
	}
	return person, nil
}
