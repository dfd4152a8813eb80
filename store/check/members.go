package check

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A memberRow is a row of the table members.
type memberRow struct {
	row            int64
	id, dn, folded string
}

// members checks the DNs of an org's members, and that no valid token permits more than the member
// to whom it belongs may do.
func (c *checker) members(ctx context.Context, o *org) error {
	for after := int64(0); ; {
		var page []memberRow
		err := c.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, func(row sqldb.Scanner) (m memberRow, err error) {
				return m, row.Scan(&m.row, &m.id, &m.dn, &m.folded)
			}, "SELECT id, member_id, dn, folded FROM members WHERE org_id = ? AND id > ? ORDER BY id LIMIT 200", o.id, after)
			return err
		})
		if err != nil {
			return fmt.Errorf("read members: %w", err)
		}
		if len(page) == 0 {
			return c.memberTokens(ctx, o)
		}
		for _, m := range page {
			c.member(o.name, m)
		}
		after = page[len(page)-1].row
	}
}

// member checks the DN of a member.
func (c *checker) member(org string, m memberRow) {
	dn, err := member.ParseDN(m.dn)
	switch {
	case err != nil:
		c.Problemf("member", org, "member "+m.id, "its DN is not valid: %v", err)
	case dn.Fold() != m.folded:
		c.Problemf("member", org, "member "+m.id, "its DN, folded, is %q, and the row has %q", dn.Fold(), m.folded)
	}
}

// memberTokens checks the tokens of members.
func (c *checker) memberTokens(ctx context.Context, o *org) error {
	return c.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			var token, id string
			var scope ledger.Scope
			if err := row.Scan(&token, &id, &scope); err != nil {
				return err
			}
			c.Problemf("member", o.name, "member "+id, "the token %s with the scope %s is valid, and the member may not do "+
				"that", token, scope)
			return nil
		}, `
SELECT t.token_id, m.member_id, t.permission FROM members m JOIN tokens t ON t.member_id = m.id AND t.member_id > 0
WHERE m.org_id = ? AND t.revoked_at = 0 AND (t.expires_at = 0 OR t.expires_at > ?)
  AND (m.removed_at > 0 OR t.permission > m.role)
ORDER BY t.id LIMIT 100`, o.id, ledger.TimeOf(time.Now()))
	})
}
