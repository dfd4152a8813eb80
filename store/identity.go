package store

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

const selectIdentity = `
SELECT i.id, i.identity_id, o.name, i.kind, i.dn, i.email, i.emails, i.logins, i.may, i.dn_pattern, i.pem,
  i.fingerprint, i.not_after,
  i.created_at, i.revoked_at, i.distrusted_since, i.event_id, i.sigstore, i.kind <> 'root' AND EXISTS (
    SELECT 1 FROM signers s WHERE s.org_id = i.org_id AND s.dn = i.dn AND s.distinct_by > 0)
FROM identities i JOIN orgs o ON o.id = i.org_id `

func scanIdentity(row txn.Scanner) (txn.Keyed[identity.Identity], error) {
	var i txn.Keyed[identity.Identity]
	var emails, logins, may, entry string
	err := row.Scan(&i.ID, &i.Row.ID, &i.Row.Org, &i.Row.Kind, &i.Row.DN, &i.Row.Email, &emails, &logins, &may,
		&i.Row.DNPattern, &i.Row.PEM, &i.Row.Fingerprint, &i.Row.NotAfter, &i.Row.CreatedAt, &i.Row.RevokedAt,
		&i.Row.DistrustedSince, &i.Row.Event, &entry, &i.Row.Distinct)
	i.Row.Emails, i.Row.Logins, i.Row.May = linesOf(emails), linesOf(logins), linesOf(may)
	if err == nil && entry != "" {
		i.Row.Sigstore = new(ledger.SigstoreEntry)
		err = json.Unmarshal([]byte(entry), i.Row.Sigstore)
	}
	return i, err
}

// linesOf returns the lines of a text; nil without any.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
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
func (s *Store) AddIdentity(ctx context.Context, org string, n identity.Identity) (identity.Identity, error) {
	return write(ctx, s, org, func(t *tx) (added identity.Identity, err error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return added, err
		}
		if err := t.checkEntry(org, n.Sigstore); err != nil {
			return added, err
		}
		return t.addIdentity(org, orgID, n)
	})
}

func (t *tx) addIdentity(org string, orgID int64, n identity.Identity) (added identity.Identity, err error) {
	identityID, err := t.kernel.NewID(orgID, txn.IdentityPrefix)
	if err != nil {
		return added, err
	}
	id, err := t.insertIdentity(orgID, identityID, n)
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

	if err := t.keyringChanged(orgID); err != nil {
		return added, err
	}
	if err := t.registerPerson(orgID, identityID, n, n.AuthorNames()); err != nil {
		return added, err
	}
	i, err := scanIdentity(t.Row(selectIdentity+"WHERE i.id = ?", id))
	if err != nil {
		return added, fmt.Errorf("read identity: %w", err)
	}
	return t.logIdentity(orgID, identity.Identity{}, i, ledger.IdentityAdded)
}

// checkEntry returns an error if an entry for keyless signers names a trusted root that the org does
// not have.
func (t *tx) checkEntry(org string, entry *ledger.SigstoreEntry) error {
	if entry == nil {
		return nil
	}
	r, err := t.findTrustedRoot(org, entry.TrustedRoot, 0)
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

func (t *tx) insertIdentity(orgID int64, identityID string, n identity.Identity) (int64, error) {
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

func (rd reader) findIdentity(org, id string) (txn.Keyed[identity.Identity], error) {
	i, err := scanIdentity(rd.Row(selectIdentity+"WHERE o.name = ? AND i.identity_id = ?", org, id))
	return i, txn.Missing(err, "identity %s not found", id)
}

// Identity returns an identity of an org, even if it is revoked.
func (s *Store) Identity(ctx context.Context, org, id string) (identity.Identity, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (identity.Identity, error) {
		i, err := rd.findIdentity(org, id)
		return i.Row, err
	})
}

// Identities lists the identities of an org, oldest first, including revoked ones.
func (s *Store) Identities(ctx context.Context, org string, q txn.Query) (ledger.Page[identity.Identity], error) {
	return txn.ListOf(ctx, s.db, org, "identities", q, scanIdentity,
		selectIdentity+"WHERE i.org_id = ? AND i.id > ? ORDER BY i.id LIMIT ?")
}

// ChangeIdentity changes an identity and returns it. Attestations that are verified from
// then on follow the change; those that are recorded keep what they have.
func (s *Store) ChangeIdentity(ctx context.Context, org, id string, c identity.Change) (identity.Identity, error) {
	return write(ctx, s, org, func(t *tx) (identity.Identity, error) {
		i, err := t.findIdentity(org, id)
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
			if err := t.setDistinct(orgID, org, changed.ID, changed.DN, changed.Distinct); err != nil {
				return changed, err
			}
		}
		isSame := slices.Equal(changed.May, i.Row.May) && changed.DNPattern == i.Row.DNPattern &&
			slices.Equal(changed.AuthorNames(), i.Row.AuthorNames())
		if isSame {
			if err := t.namesChanged(orgID, i.Row, changed); err != nil || changed.Distinct == i.Row.Distinct {
				return changed, err
			}
			return changed, t.auditIdentity(orgID, i.Row, changed, ledger.IdentityChanged)
		}
		_, err = t.Exec("UPDATE identities SET may = ?, dn_pattern = ?, email = ?, emails = ?, logins = ? WHERE id = ?",
			strings.Join(changed.May, "\n"), changed.DNPattern, changed.Email, strings.Join(changed.Emails, "\n"),
			strings.Join(changed.Logins, "\n"), i.ID)
		if err != nil {
			return changed, fmt.Errorf("update identity: %w", err)
		}
		if err := t.namesChanged(orgID, i.Row, changed); err != nil {
			return changed, err
		}
		if err := t.keyringChanged(orgID); err != nil {
			return changed, err
		}
		before := i.Row
		i.Row = changed
		return t.logIdentity(orgID, before, i, ledger.IdentityChanged)
	})
}

// namesChanged stores the names that the signer of a changed identity has by all identities with its
// DN, revoked ones too.
func (t *tx) namesChanged(orgID int64, before, after identity.Identity) error {
	list, err := all(t.reader, scanIdentity, selectIdentity+"WHERE i.org_id = ? AND i.dn = ? ORDER BY i.id", orgID,
		after.DN)
	if err != nil {
		return fmt.Errorf("read the identities of a signer: %w", err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Row.AuthorNames()...)
	}
	return t.changeNames(orgID, before, after, names)
}

// RevokeIdentity revokes an identity; what it has signed stays recorded and counts. It is
// a no-op if the identity is already revoked.
func (s *Store) RevokeIdentity(ctx context.Context, org, id string) error {
	return s.write(ctx, org, func(t *tx) error {
		i, err := t.findIdentity(org, id)
		if err != nil {
			return err
		}
		return t.revokeIdentity(org, i)
	})
}

// revokeIdentity revokes an identity from now on, unless it is revoked.
func (t *tx) revokeIdentity(org string, i txn.Keyed[identity.Identity]) error {
	if i.Row.RevokedAt != 0 {
		return nil
	}
	orgID, err := t.OrgID(org)
	if err != nil {
		return err
	}
	if err := t.revoke(orgID, i.ID); err != nil {
		return err
	}
	before := i.Row
	i.Row.RevokedAt = t.Now
	_, err = t.logIdentity(orgID, before, i, ledger.IdentityRevoked)
	return err
}

// revoke revokes an identity from now on.
func (t *tx) revoke(orgID, identity int64) error {
	if _, err := t.Exec("UPDATE identities SET revoked_at = ? WHERE id = ?", t.Now, identity); err != nil {
		return fmt.Errorf("revoke identity: %w", err)
	}
	return t.keyringChanged(orgID)
}

// Keyring returns the org's current keyring, and its version, which Record compares.
func (s *Store) Keyring(ctx context.Context, org string) (*identity.Keyring, int64, error) {
	v, err := readLoose(ctx, s, txn.ForWrite(org), func(rd reader) (versionedKeyring, error) { return rd.keyring(org) })
	return v.keyring, v.version, err
}

// keyring reads the identities of an org if they have changed, and its trusted roots if an identity
// admits keyless signers. It reads the version first, so the identities may be newer than the version.
// Record detects that, as it detects later changes.
func (rd reader) keyring(org string) (versionedKeyring, error) {
	var v versionedKeyring
	var orgID int64
	if err := rd.Row("SELECT id, keyring_version FROM orgs WHERE name = ?", org).Scan(&orgID, &v.version); err != nil {
		return v, txn.Missing(err, "org %s not found", org)
	}
	v.version = txn.KeyringVersion(orgID, v.version)
	if latest, ok := rd.caches.keyrings.Get(org); ok && latest.version == v.version {
		return latest, nil
	}

	rows, err := all(rd, scanIdentity, selectIdentity+"WHERE o.name = ? ORDER BY i.id", org)
	if err != nil {
		return v, fmt.Errorf("read identities: %w", err)
	}
	identities := make([]identity.Identity, len(rows))
	for i, r := range rows {
		identities[i] = r.Row
	}
	var roots []identity.TrustedRoot
	if slices.ContainsFunc(identities, isKeyless) {
		if roots, err = rd.trustedRoots(orgID); err != nil {
			return v, err
		}
	}
	if v.keyring, err = identity.NewKeyring(identities, rd.caches.parseRoot, roots...); err != nil {
		return v, fmt.Errorf("create keyring of %s: %w", org, err)
	}
	rd.caches.keyrings.Put(org, v)
	return v, nil
}

func isKeyless(i identity.Identity) bool { return i.Kind == identity.SigstoreIdentity }

// logIdentity appends the events of an identity that was added, changed or revoked, and
// notes the first as the identity's latest. It returns the identity with it. before is the
// identity as it was; zero if it was added.
func (t *tx) logIdentity(
	orgID int64, before identity.Identity, i txn.Keyed[identity.Identity], action ledger.IdentityAction,
) (identity.Identity, error) {
	e, err := i.Row.Logged(action)
	if err != nil {
		return i.Row, fmt.Errorf("log identity: %w", err)
	}
	if e.ID, err = t.kernel.NewID(orgID, txn.EventPrefix); err != nil {
		return i.Row, err
	}
	e.Timestamp, i.Row.Event = t.Now, e.ID
	if _, err := t.Exec("UPDATE identities SET event_id = ? WHERE id = ?", e.ID, i.ID); err != nil {
		return i.Row, fmt.Errorf("log identity: %w", err)
	}
	if err := t.s.Journal.AppendToOrg(t.kernel, orgID, ledger.EventIdentity, e.ID, ledger.Render(e)); err != nil {
		return i.Row, err
	}
	return i.Row, t.auditIdentity(orgID, before, i.Row, action)
}

// auditIdentity appends the event of an administrative action on an identity. It appends nothing for
// an identity that was known before a release that logs identities.
func (t *tx) auditIdentity(orgID int64, before, i identity.Identity, action ledger.IdentityAction) error {
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
	return t.s.Journal.Audit(t.kernel, orgID, i.Org, a)
}
