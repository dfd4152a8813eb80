package signers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A passkeyRow is a row of the table passkeys.
type passkeyRow struct {
	row int64
	passkey.Passkey
}

// passkeys checks that the rows of an org's passkeys say what the latest events about them do.
func (o *Org) passkeys(ctx context.Context) error {
	logged, rows := &o.logged, make(map[string]bool)
	for after := int64(0); ; {
		var page []passkeyRow
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, func(row sqldb.Scanner) (p passkeyRow, err error) {
				return p, row.Scan(&p.row, &p.ID, &p.DN, &p.RPID, &p.PublicKey, &p.RemovedAt)
			}, `
SELECT p.id, p.passkey_id, m.dn, p.rp_id, p.public_key, p.removed_at
FROM passkeys p JOIN members m ON m.id = p.member_id
WHERE p.org_id = ? AND p.id > ? ORDER BY p.id LIMIT 200`, o.id, after)
			if err != nil {
				return err
			}
			return logged.readOn(conn, o.id)
		})
		if err != nil {
			return fmt.Errorf("read passkeys: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, p := range page {
			rows[p.ID] = true
			o.passkey(p.Passkey)
		}
		after = page[len(page)-1].row
	}

	for _, id := range slices.Sorted(maps.Keys(logged.passkeys)) {
		if !rows[id] {
			o.Problemf("passkey", o.name, "passkey "+id, "there are events about it, the last is %s, and no row",
				logged.passkeys[id].ID)
		}
	}
	return nil
}

// passkey compares the row of a passkey with the latest event about it.
func (o *Org) passkey(p passkey.Passkey) {
	said := o.logged.passkeys[p.ID]
	if said == nil {
		if o.logged.unread == 0 { // else it is perhaps one of those
			o.Problemf("passkey", o.name, "passkey "+p.ID, "there is no event about it")
		}
		return
	}

	p.Key = passkey.Fingerprint(p.PublicKey)
	action := ledger.IdentityAdded
	if p.RemovedAt != 0 {
		action = ledger.IdentityRevoked
	}
	row := p.Event(action)
	for _, field := range []struct{ name, row, event string }{
		{"DN", row.DN, said.DN}, {"key", row.Key, said.Key}, {"domain", row.RPID, said.RPID},
		{"last action", string(row.Action), string(said.Action)},
		{"time of its removal", row.RevokedAt.String(), said.RevokedAt.String()},
	} {
		if field.row != field.event {
			o.Problemf("passkey", o.name, "passkey "+p.ID, "the row has the %s %q, and event %s %q", field.name, field.row,
				said.ID, field.event)
		}
	}
}
