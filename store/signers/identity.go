package signers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// SelectIdentity selects identities i with their orgs o, for ScanIdentity.
const SelectIdentity = `
SELECT i.id, i.identity_id, o.name, i.kind, i.dn, i.email, i.emails, i.logins, i.may, i.dn_pattern, i.pem,
  i.fingerprint, i.not_after,
  i.created_at, i.revoked_at, i.distrusted_since, i.event_id, i.sigstore, i.kind <> 'root' AND EXISTS (
    SELECT 1 FROM signers s WHERE s.org_id = i.org_id AND s.dn = i.dn AND s.distinct_by > 0)
FROM identities i JOIN orgs o ON o.id = i.org_id `

// ScanIdentity scans a row of SelectIdentity.
func ScanIdentity(row txn.Scanner) (txn.Keyed[identity.Identity], error) {
	var i txn.Keyed[identity.Identity]
	var emails, logins, may, entry string
	err := row.Scan(&i.ID, &i.Row.ID, &i.Row.Org, &i.Row.Kind, &i.Row.DN, &i.Row.Email, &emails, &logins, &may,
		&i.Row.DNPattern, &i.Row.PEM, &i.Row.Fingerprint, &i.Row.NotAfter, &i.Row.CreatedAt, &i.Row.RevokedAt,
		&i.Row.DistrustedSince, &i.Row.Event, &entry, &i.Row.Distinct)
	i.Row.Emails, i.Row.Logins, i.Row.May = sqldb.Lines(emails), sqldb.Lines(logins), sqldb.Lines(may)
	if err == nil && entry != "" {
		i.Row.Sigstore = new(ledger.SigstoreEntry)
		err = json.Unmarshal([]byte(entry), i.Row.Sigstore)
	}
	return i, err
}

// entryOf returns the entry of an identity as it is stored; empty without one.
func entryOf(i identity.Identity) (string, error) {
	if i.Sigstore == nil {
		return "", nil
	}
	entry, err := json.Marshal(i.Sigstore)
	return string(entry), err
}

// AddIdentity adds an identity to an org's keyring and returns it with ID, Org and
// CreatedAt set. It returns CodeAlreadyExists if the org already trusts the key.
func (sg *Signers) AddIdentity(ctx context.Context, org string, n identity.Identity) (identity.Identity, error) {
	return txn.Write(ctx, sg.db, sqldb.Write{Org: org}, func(t *txn.Tx) (added identity.Identity, err error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return added, err
		}
		if err := checkEntry(t, org, n.Sigstore); err != nil {
			return added, err
		}
		return sg.addIdentity(t, org, orgID, n)
	})
}

func (sg *Signers) addIdentity(t *txn.Tx, org string, orgID int64, n identity.Identity) (added identity.Identity,
	err error) {
	identityID, err := t.NewID(orgID, txn.IdentityPrefix)
	if err != nil {
		return added, err
	}
	id, err := insertIdentity(t, orgID, identityID, n)
	if sqldb.ClassOf(err) == sqldb.Duplicate {
		what := "key"
		if n.Kind == identity.SigstoreIdentity {
			what = "entry"
		}
		return added, ledger.Errorf(ledger.CodeAlreadyExists,
			"org %s already trusts this %s: to rename the identity, revoke it first", org, what)
	}
	if err != nil {
		return added, fmt.Errorf("insert identity: %w", err)
	}

	if err := keyringChanged(t, orgID); err != nil {
		return added, err
	}
	if err := sg.registerPerson(t, orgID, identityID, n, n.AuthorNames()); err != nil {
		return added, err
	}
	i, err := ScanIdentity(t.Row(SelectIdentity+"WHERE i.id = ?", id))
	if err != nil {
		return added, fmt.Errorf("read identity: %w", err)
	}
	return sg.logIdentity(t, orgID, identity.Identity{}, i, ledger.IdentityAdded)
}

// checkEntry returns an error if an entry for keyless signers names a trusted root that the org does
// not have.
func checkEntry(t *txn.Tx, org string, entry *ledger.SigstoreEntry) error {
	if entry == nil {
		return nil
	}
	r, err := findTrustedRoot(t.Reader, org, entry.TrustedRoot, 0)
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.Removed {
		return ledger.FieldErrorf(ledger.CodeInvalidField, "sigstore.trusted_root",
			"org %s has no trusted root %s (an admin sets it: ledgerd trusted-root set %[2]s --file …)", org,
			entry.TrustedRoot)
	}
	if err != nil {
		return fmt.Errorf("read trusted root: %w", err)
	}
	return nil
}

func insertIdentity(t *txn.Tx, orgID int64, identityID string, n identity.Identity) (int64, error) {
	entry, err := entryOf(n)
	if err != nil {
		return 0, err
	}
	return t.Insert(`
INSERT INTO identities (identity_id, org_id, kind, dn, email, emails, logins, may, dn_pattern, pem, fingerprint,
  not_after, created_at, sigstore)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		identityID, orgID, n.Kind, n.DN, n.Email, strings.Join(n.Emails, "\n"), strings.Join(n.Logins, "\n"),
		strings.Join(n.May, "\n"), n.DNPattern, n.PEM, n.Fingerprint, n.NotAfter, t.Now, entry)
}

// FindIdentity returns an identity of an org, or CodeNotFound.
func FindIdentity(rd txn.Reader, org, id string) (txn.Keyed[identity.Identity], error) {
	i, err := ScanIdentity(rd.Row(SelectIdentity+"WHERE o.name = ? AND i.identity_id = ?", org, id))
	return i, txn.Missing(err, "identity %s not found", id)
}

// Identity returns an identity of an org, even if it is revoked.
func (sg *Signers) Identity(ctx context.Context, org, id string) (identity.Identity, error) {
	return txn.Read(ctx, sg.db, txn.ByOrg(org), func(rd txn.Reader) (identity.Identity, error) {
		i, err := FindIdentity(rd, org, id)
		return i.Row, err
	})
}

// Identities lists the identities of an org, oldest first, including revoked ones.
func (sg *Signers) Identities(ctx context.Context, org string, q txn.Query) (ledger.Page[identity.Identity], error) {
	return txn.ListOf(ctx, sg.db, org, "identities", q, ScanIdentity,
		SelectIdentity+"WHERE i.org_id = ? AND i.id > ? ORDER BY i.id LIMIT ?")
}

// ChangeIdentity changes an identity and returns it. Attestations that are verified from
// then on follow the change; those that are recorded keep what they have.
func (sg *Signers) ChangeIdentity(ctx context.Context, org, id string, c identity.Change) (identity.Identity, error) {
	return txn.Write(ctx, sg.db, sqldb.Write{Org: org}, func(t *txn.Tx) (identity.Identity, error) {
		i, err := FindIdentity(t.Reader, org, id)
		if err != nil {
			return i.Row, err
		}
		changed, err := i.Row.Changed(c)
		if err != nil {
			return i.Row, err
		}

		orgID, err := t.WritableOrg(org)
		if err != nil {
			return changed, err
		}
		if c.Distinct != nil {
			if err := sg.SetDistinct(t, orgID, org, changed.ID, changed.DN, changed.Distinct); err != nil {
				return changed, err
			}
		}
		isSame := slices.Equal(changed.May, i.Row.May) && changed.DNPattern == i.Row.DNPattern &&
			slices.Equal(changed.AuthorNames(), i.Row.AuthorNames())
		if isSame {
			if err := sg.namesChanged(t, orgID, i.Row, changed); err != nil || changed.Distinct == i.Row.Distinct {
				return changed, err
			}
			return changed, sg.auditIdentity(t, orgID, i.Row, changed, ledger.IdentityChanged)
		}
		_, err = t.Exec("UPDATE identities SET may = ?, dn_pattern = ?, email = ?, emails = ?, logins = ? WHERE id = ?",
			strings.Join(changed.May, "\n"), changed.DNPattern, changed.Email, strings.Join(changed.Emails, "\n"),
			strings.Join(changed.Logins, "\n"), i.ID)
		if err != nil {
			return changed, fmt.Errorf("update identity: %w", err)
		}
		if err := sg.namesChanged(t, orgID, i.Row, changed); err != nil {
			return changed, err
		}
		if err := keyringChanged(t, orgID); err != nil {
			return changed, err
		}
		before := i.Row
		i.Row = changed
		return sg.logIdentity(t, orgID, before, i, ledger.IdentityChanged)
	})
}

// namesChanged stores the names that the signer of a changed identity has by all identities with its
// DN, revoked ones too.
func (sg *Signers) namesChanged(t *txn.Tx, orgID int64, before, after identity.Identity) error {
	list, err := txn.All(t.Reader, ScanIdentity, SelectIdentity+"WHERE i.org_id = ? AND i.dn = ? ORDER BY i.id", orgID,
		after.DN)
	if err != nil {
		return fmt.Errorf("read the identities of a signer: %w", err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Row.AuthorNames()...)
	}
	return sg.changeNames(t, orgID, before, after, names)
}

// RevokeIdentity revokes an identity; what it has signed stays recorded and counts. It is
// a no-op if the identity is already revoked.
func (sg *Signers) RevokeIdentity(ctx context.Context, org, id string) error {
	return sg.db.Change(ctx, org, func(t *txn.Tx) error {
		i, err := FindIdentity(t.Reader, org, id)
		if err != nil {
			return err
		}
		return sg.Revoke(t, org, i)
	})
}

// Revoke revokes an identity from now on, unless it is revoked.
func (sg *Signers) Revoke(t *txn.Tx, org string, i txn.Keyed[identity.Identity]) error {
	if i.Row.RevokedAt != 0 {
		return nil
	}
	orgID, err := t.OrgID(org)
	if err != nil {
		return err
	}
	if err := markRevoked(t, orgID, i.ID); err != nil {
		return err
	}
	before := i.Row
	i.Row.RevokedAt = t.Now
	_, err = sg.logIdentity(t, orgID, before, i, ledger.IdentityRevoked)
	return err
}

// markRevoked revokes an identity from now on.
func markRevoked(t *txn.Tx, orgID, identity int64) error {
	if _, err := t.Exec("UPDATE identities SET revoked_at = ? WHERE id = ?", t.Now, identity); err != nil {
		return fmt.Errorf("revoke identity: %w", err)
	}
	return keyringChanged(t, orgID)
}

// A VersionedKeyring is a keyring with its version.
type VersionedKeyring struct {
	Version int64
	Keyring *identity.Keyring
}

// Keyring returns the org's current keyring, and its version, which Record compares.
func (sg *Signers) Keyring(ctx context.Context, org string) (*identity.Keyring, int64, error) {
	v, err := txn.ReadLoose(ctx, sg.db, txn.ForWrite(org), func(rd txn.Reader) (VersionedKeyring, error) {
		return sg.keyring(rd, org)
	})
	return v.Keyring, v.Version, err
}

// LastKeyring returns the keyring of an org that was read last, which may be out of date.
func (sg *Signers) LastKeyring(org string) (VersionedKeyring, bool) { return sg.keyrings.Get(org) }

// keyring reads the identities of an org if they have changed, and its trusted roots if an identity
// admits keyless signers. It reads the version first, so the identities may be newer than the version.
// Record detects that, as it detects later changes.
func (sg *Signers) keyring(rd txn.Reader, org string) (VersionedKeyring, error) {
	var v VersionedKeyring
	var orgID int64
	if err := rd.Row("SELECT id, keyring_version FROM orgs WHERE name = ?", org).Scan(&orgID, &v.Version); err != nil {
		return v, txn.Missing(err, "org %s not found", org)
	}
	v.Version = txn.KeyringVersion(orgID, v.Version)
	if latest, ok := sg.keyrings.Get(org); ok && latest.Version == v.Version {
		return latest, nil
	}

	rows, err := txn.All(rd, ScanIdentity, SelectIdentity+"WHERE o.name = ? ORDER BY i.id", org)
	if err != nil {
		return v, fmt.Errorf("read identities: %w", err)
	}
	identities := make([]identity.Identity, len(rows))
	for i, r := range rows {
		identities[i] = r.Row
	}
	var roots []identity.TrustedRoot
	if slices.ContainsFunc(identities, isKeyless) {
		if roots, err = trustedRoots(rd, orgID); err != nil {
			return v, err
		}
	}
	if v.Keyring, err = identity.NewKeyring(identities, sg.parseRoot, roots...); err != nil {
		return v, fmt.Errorf("create keyring of %s: %w", org, err)
	}
	sg.keyrings.Put(org, v)
	return v, nil
}

func isKeyless(i identity.Identity) bool { return i.Kind == identity.SigstoreIdentity }

// logIdentity appends the events of an identity that was added, changed or revoked, and
// notes the first as the identity's latest. It returns the identity with it. before is the
// identity as it was; zero if it was added.
func (sg *Signers) logIdentity(t *txn.Tx,
	orgID int64, before identity.Identity, i txn.Keyed[identity.Identity], action ledger.IdentityAction,
) (identity.Identity, error) {
	e, err := i.Row.Logged(action)
	if err != nil {
		return i.Row, fmt.Errorf("log identity: %w", err)
	}
	if e.ID, err = t.NewID(orgID, txn.EventPrefix); err != nil {
		return i.Row, err
	}
	e.Timestamp, i.Row.Event = t.Now, e.ID
	if _, err := t.Exec("UPDATE identities SET event_id = ? WHERE id = ?", e.ID, i.ID); err != nil {
		return i.Row, fmt.Errorf("log identity: %w", err)
	}
	if err := sg.journal.AppendToOrg(t, orgID, ledger.EventIdentity, e.ID, ledger.Render(e)); err != nil {
		return i.Row, err
	}
	return i.Row, sg.auditIdentity(t, orgID, before, i.Row, action)
}

// auditIdentity appends the event of an administrative action on an identity. It appends nothing for
// an identity that was known before a release that logs identities.
func (sg *Signers) auditIdentity(t *txn.Tx, orgID int64, before, i identity.Identity,
	action ledger.IdentityAction) error {
	a := events.Audited{Target: i.ID, Before: identityFields(before), After: identityFields(i)}
	switch action {
	case ledger.IdentityAdded:
		a.Action, a.Before = ledger.AuditIdentityAdded, nil
	case ledger.IdentityChanged:
		a.Action = ledger.AuditIdentityChanged
	case ledger.IdentityRevoked:
		a.Action = ledger.AuditIdentityRevoked
	case ledger.IdentityDistrusted:
		a.Action = ledger.AuditIdentityDistrusted
	case ledger.IdentityKnown:
		return nil
	}
	return sg.journal.Audit(t, orgID, i.Org, a)
}

// identityFields returns the fields of an identity that audit events have.
func identityFields(i identity.Identity) []ledger.Field {
	return []ledger.Field{
		{Name: "kind", Value: i.Kind},
		{Name: "dn", Value: i.DN},
		{Name: "email", Value: events.Optional(i.Email)},
		{Name: "emails", Value: events.OptionalList(i.Emails)},
		{Name: "logins", Value: events.OptionalList(i.Logins)},
		{Name: "may", Value: events.OptionalList(i.May)},
		{Name: "dn_pattern", Value: events.Optional(i.DNPattern)},
		{Name: "sigstore", Value: events.Optional(i.Sigstore)},
		{Name: "fingerprint", Value: i.Fingerprint},
		{Name: "revoked_at", Value: events.Optional(i.RevokedAt)},
		{Name: "distrusted_since", Value: events.Optional(i.DistrustedSince)},
		{Name: "distinct", Value: events.Optional(i.Distinct)},
	}
}
