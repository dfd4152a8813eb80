package signers

import (
	"context"
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Check checks that the rows of the identities say what their keys and certificates do, and what the latest
// events about them do. It also checks what depends on them: trusted roots, passkeys, signers and CAs.
func (o *Org) Check(ctx context.Context) error {
	logged := &o.logged
	for after := int64(0); ; {
		var page []keyed
		err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
			page, err = sqldb.All(conn, scanIdentity, `
SELECT id, identity_id, kind, dn, email, emails, logins, may, dn_pattern, pem, fingerprint, not_after, revoked_at,
  distrusted_since,
  event_id, sigstore
FROM identities WHERE org_id = ? AND id > ? ORDER BY id LIMIT 200`, o.id, after)
			if err != nil {
				return err
			}
			return logged.readOn(conn, o.id)
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, i := range page {
			logged.rows[i.ID] = true
			if i.isUnlike {
				o.Problemf(verify.CheckIdentity, o.name, "identity "+i.ID,
					"it has not one of a key, a certificate and an entry for keyless signers")
			}
			o.identity(o.name, i.Identity)
			o.compareIdentity(i.Identity)
		}
		after = page[len(page)-1].row
	}

	for _, id := range slices.Sorted(maps.Keys(logged.latest)) {
		if !logged.rows[id] {
			o.Problemf(verify.CheckIdentity, o.name, "identity "+id, "there are events about it, the last is %s, and no row",
				logged.latest[id].ID)
		}
	}
	if err := o.trustedRoots(ctx); err != nil {
		return err
	}
	if err := o.passkeys(ctx); err != nil {
		return err
	}
	if err := o.signers(ctx); err != nil {
		return err
	}
	if err := o.authorities(ctx); err != nil {
		return err
	}
	if logged.unread > 0 {
		o.Uncheckedf("%s: what %d events say of identities, passkeys and CAs: their bodies are pruned or wrong", o.name,
			logged.unread)
	}
	return nil
}

// A keyed is an identity with its row id.
type keyed struct {
	row int64
	// isUnlike reports whether it has an entry for keyless signers that cannot be read, or a key besides.
	isUnlike bool
	identity.Identity
}

func scanIdentity(row sqldb.Scanner) (i keyed, err error) {
	var emails, logins, may, entry string
	err = row.Scan(&i.row, &i.ID, &i.Kind, &i.DN, &i.Email, &emails, &logins, &may, &i.DNPattern, &i.PEM, &i.Fingerprint,
		&i.NotAfter,
		&i.RevokedAt, &i.DistrustedSince, &i.Event, &entry)
	i.Emails, i.Logins, i.May = sqldb.Lines(emails), sqldb.Lines(logins), sqldb.Lines(may)
	i.Sigstore = entryIn(entry)
	i.isUnlike = (entry != "") != (i.Sigstore != nil) || i.Sigstore != nil && i.PEM != ""
	return i, err
}

// identity checks the row of an identity.
func (o *Org) identity(org string, i identity.Identity) {
	n := identity.NewIdentity{Kind: i.Kind, PEM: i.PEM, Sigstore: i.Sigstore}
	if i.Kind == identity.SigstoreIdentity {
		n.May = identity.Predicates{"*"}
	}
	want, err := n.Identity()
	if err != nil { // a bare key has no name of its own
		n.DN = i.DN
		want, err = n.Identity()
	}
	if err != nil {
		o.Uncheckedf("%s: identity %s is not one that this release would accept: %v", org, i.ID, err)
		return
	}
	for _, field := range []struct{ name, row, pem string }{
		{"fingerprint", i.Fingerprint, want.Fingerprint}, {"DN", i.DN, want.DN},
		{"expiry", i.NotAfter.String(), want.NotAfter.String()},
	} {
		if field.row != field.pem {
			o.Problemf(verify.CheckIdentity, org, "identity "+i.ID, "the row has the %s %s, and its key or certificate %s",
				field.name, field.row, field.pem)
		}
	}
}

// compareIdentity compares an identity with the latest event about it.
func (o *Org) compareIdentity(i identity.Identity) {
	said := o.logged.latest[i.ID]
	switch {
	case said == nil && i.Event == "":
		o.Incompletef("%s: identity %s (%s) is in no event: the server logs it at its next start", o.name, i.ID, i.DN)
		if e, err := i.Logged(ledger.IdentityKnown); err == nil {
			o.logged.trust(&e)
		}
		return
	case said == nil || said.ID != i.Event:
		if o.logged.unread > 0 {
			return // perhaps one of those
		}
		last := ""
		if said != nil {
			last = said.ID
		}
		o.Problemf(verify.CheckIdentity, o.name, "identity "+i.ID,
			"the row has the event %q, and the last event about it is %q", i.Event, last)
		return
	}

	o.Failed(o.name, "identity "+i.ID, verify.LoggedIdentity(i, said))
}
