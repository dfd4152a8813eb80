package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
)

const selectIdentity = `
SELECT i.id, i.identity_id, o.name, i.kind, i.dn, i.email, i.pem, i.fingerprint, i.not_after, i.created_at, i.revoked_at
FROM identities i JOIN orgs o ON o.id = i.org_id `

func scanIdentity(row scanner) (keyed[ledger.Identity], error) {
	var i keyed[ledger.Identity]
	err := row.Scan(&i.id, &i.row.ID, &i.row.Org, &i.row.Kind, &i.row.DN, &i.row.Email, &i.row.PEM, &i.row.Fingerprint,
		&i.row.NotAfter, &i.row.CreatedAt, &i.row.RevokedAt)
	return i, err
}

// AddIdentity trusts a key or a root from now on; ID, Org and CreatedAt are set here.
func (s *Store) AddIdentity(ctx context.Context, org string, n ledger.Identity) (ledger.Identity, error) {
	var identity keyed[ledger.Identity]
	err := s.write(ctx, func(t *tx) error {
		orgID, err := orgID(t.conn, org)
		if err != nil {
			return err
		}
		identityID, err := t.ids.next(identityPrefix, t.now)
		if err != nil {
			return err
		}
		id, err := t.insert(`INSERT INTO identities (identity_id, org_id, kind, dn, email, pem, fingerprint, not_after, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			identityID, orgID, n.Kind, n.DN, n.Email, n.PEM, n.Fingerprint, n.NotAfter, t.now)
		if isUnique(err) {
			return ledger.Errorf(ledger.CodeAlreadyExists, "the org %s trusts this key already; revoke that identity first to give it another name", org)
		}
		if err != nil {
			return fmt.Errorf("insert identity: %w", err)
		}
		if err := t.keyringChanged(orgID); err != nil {
			return err
		}
		identity, err = scanIdentity(t.row(selectIdentity+"WHERE i.id = ?", id))
		return err
	})
	return identity.row, err
}

func (t *tx) keyringChanged(orgID int64) error {
	_, err := t.exec("UPDATE orgs SET keyring_version = keyring_version + 1 WHERE id = ?", orgID)
	return err
}

func findIdentity(c *conn, org, id string) (keyed[ledger.Identity], error) {
	i, err := scanIdentity(c.row(selectIdentity+"WHERE o.name = ? AND i.identity_id = ?", org, id))
	return i, missing(err, "identity %s", id)
}

// Identity returns one identity of an org, also a revoked one.
func (s *Store) Identity(ctx context.Context, org, id string) (ledger.Identity, error) {
	var i keyed[ledger.Identity]
	err := s.read(ctx, func(c *conn) (err error) {
		i, err = findIdentity(c, org, id)
		return err
	})
	return i.row, err
}

// Identities lists the identities of an org, oldest first, revoked ones too.
func (s *Store) Identities(ctx context.Context, org string, q Query) (ledger.Page[ledger.Identity], error) {
	return listOf(ctx, s, org, q, scanIdentity, selectIdentity+"WHERE i.org_id = ? AND i.id > ? ORDER BY i.id LIMIT ?")
}

// RevokeIdentity ends the trust in an identity from now on; what was recorded
// stays. Revoking it again changes nothing.
func (s *Store) RevokeIdentity(ctx context.Context, org, id string) error {
	return s.write(ctx, func(t *tx) error {
		i, err := findIdentity(t.conn, org, id)
		if err != nil || i.row.RevokedAt != 0 {
			return err
		}
		if _, err := t.exec("UPDATE identities SET revoked_at = ? WHERE id = ?", t.now, i.id); err != nil {
			return fmt.Errorf("revoke identity: %w", err)
		}
		orgID, err := orgID(t.conn, org)
		if err != nil {
			return err
		}
		return t.keyringChanged(orgID)
	})
}

// ErrKeyringChanged means that an identity was added or revoked between the
// verification of an attestation and its recording: verify it anew.
var ErrKeyringChanged = errors.New("the org's identities have changed since the attestation was verified")

// A keyringCache holds the latest keyring of each org that was asked for.
type keyringCache struct {
	mu    sync.Mutex
	byOrg map[string]cachedKeyring
}

type cachedKeyring struct {
	version int64
	keyring *ledger.Keyring
}

func (k *keyringCache) get(org string, version int64) (*ledger.Keyring, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cached, ok := k.byOrg[org]
	return cached.keyring, ok && cached.version == version
}

func (k *keyringCache) put(org string, version int64, keyring *ledger.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byOrg == nil {
		k.byOrg = make(map[string]cachedKeyring)
	}
	k.byOrg[org] = cachedKeyring{version, keyring}
}

// Keyring returns the org's identities ready for verifying, and the version of
// the set, which Record compares.
func (s *Store) Keyring(ctx context.Context, org string) (*ledger.Keyring, int64, error) {
	var keyring *ledger.Keyring
	var version int64
	// Identities read after the version may be newer: then Record finds that
	// out by the version, as it does when they change later.
	err := s.readLoose(ctx, func(c *conn) error {
		err := c.row("SELECT keyring_version FROM orgs WHERE name = ?", org).Scan(&version)
		if err != nil {
			return missing(err, "org %s", org)
		}
		var ok bool
		if keyring, ok = s.keyrings.get(org, version); ok {
			return nil
		}
		rows, err := all(c, scanIdentity, selectIdentity+"WHERE o.name = ? ORDER BY i.id", org)
		if err != nil {
			return fmt.Errorf("read identities: %w", err)
		}
		identities := make([]ledger.Identity, len(rows))
		for i, r := range rows {
			identities[i] = r.row
		}
		if keyring, err = ledger.NewKeyring(identities); err != nil {
			return fmt.Errorf("make keyring of %s: %w", org, err)
		}
		s.keyrings.put(org, version, keyring)
		return nil
	})
	return keyring, version, err
}
