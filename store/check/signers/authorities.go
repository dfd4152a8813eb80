package signers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// An authority is a row of the table cas, with the identity that is its root.
type authority struct {
	id      string        // of the root
	kind    identity.Kind // empty if the org has no such identity
	pem     string
	purpose string
	retired bool
}

func scanAuthority(row sqldb.Scanner) (a authority, err error) {
	return a, row.Scan(&a.id, &a.kind, &a.pem, &a.purpose, &a.retired)
}

// digest returns the digest of the root's certificate as the events about the CA have it.
func (a authority) digest() string {
	block, _ := pem.Decode([]byte(a.pem))
	if block == nil {
		return "" // the check of the identity reports it
	}
	digest := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(digest[:])
}

// authorities checks that the CAs of an org are roots that it has, that at most one of each purpose is
// in use, and that the events about them say the same.
func (o *Org) authorities(ctx context.Context) error {
	var list []authority
	err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
		list, err = sqldb.All(conn, scanAuthority, `
SELECT c.identity_id, coalesce(i.kind, ''), coalesce(i.pem, ''), c.purpose, c.retired_at > 0
FROM cas c LEFT JOIN identities i ON i.identity_id = c.identity_id AND i.org_id = c.org_id
WHERE c.org_id = ? ORDER BY c.id`, o.id)
		if err != nil {
			return err
		}
		return o.logged.readOn(conn, o.id)
	})
	if err != nil {
		return err
	}

	inUse, rows := make(map[string]int), make(map[string]bool)
	for _, a := range list {
		if rows[a.digest()] {
			o.Problemf("CA", o.name, "CA "+a.id, "there are two rows of it")
		}
		rows[a.digest()] = true
		if !a.retired {
			inUse[a.purpose]++
		}
		o.authority(a)
	}
	for _, purpose := range slices.Sorted(maps.Keys(inUse)) {
		if n := inUse[purpose]; n > 1 {
			o.Problemf("CA", o.name, "", "%d CAs for the purpose %q are in use, and at most one may be", n, purpose)
		}
	}
	for _, digest := range slices.Sorted(maps.Keys(o.logged.authorities)) {
		if !rows[digest] {
			o.Problemf("CA", o.name, "CA with the certificate "+digest,
				"there are events about it, the last is %s, and no row", o.logged.authorities[digest].ID)
		}
	}
	return nil
}

// authority compares the row of a CA with its root and with the latest event about it.
func (o *Org) authority(a authority) {
	switch a.kind {
	case identity.RootIdentity:
	case "":
		o.Problemf("CA", o.name, "CA "+a.id, "the org has no such identity")
		return
	default:
		o.Problemf("CA", o.name, "CA "+a.id, "the identity is of the kind %s, and must be a root", a.kind)
		return
	}

	if p := ca.Purpose(a.purpose); p != ca.Jobs && p != ca.People {
		o.Problemf("CA", o.name, "CA "+a.id, "it has the purpose %q, which is not one of a CA", a.purpose)
	}
	action := ledger.KeyAdded
	if a.retired {
		action = ledger.KeyRevoked
	}
	said := o.logged.authorities[a.digest()]
	switch {
	case said == nil && o.logged.unread > 0: // perhaps one of those
	case said == nil:
		o.Problemf("CA", o.name, "CA "+a.id, "there is no event about it")
	case said.Action != action:
		o.Problemf("CA", o.name, "CA "+a.id, "the row says %q, and event %s %q", action, said.ID, said.Action)
	}
}
