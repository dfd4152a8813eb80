package migrations

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// addKeysAndFolds fills the columns that schema version 6 adds: the key of each
// attestation's signature, and the folded DN of each signer.
func addKeysAndFolds(c *sqldb.Conn) error {
	if err := addFolds(c); err != nil {
		return fmt.Errorf("fold signers: %w", err)
	}
	if err := addIdentityKeys(c); err != nil {
		return fmt.Errorf("add the keys of identities: %w", err)
	}
	if err := addCertifiedKeys(c); err != nil {
		return fmt.Errorf("add the keys of certificates: %w", err)
	}
	return nil
}

func addFolds(c *sqldb.Conn) error {
	type signer struct {
		id int64
		dn string
	}
	signers, err := sqldb.All(c, func(row txn.Scanner) (s signer, err error) {
		return s, row.Scan(&s.id, &s.dn)
	}, "SELECT id, dn FROM signers")
	if err != nil {
		return err
	}
	for _, s := range signers {
		dn, err := identity.ParseDN(s.dn)
		if err != nil {
			return err
		}
		if _, err := c.Exec("UPDATE signers SET folded = ? WHERE id = ?", dn.Fold(), s.id); err != nil {
			return err
		}
	}
	return nil
}

// addIdentityKeys sets the keys of attestations that were signed by a registered key,
// from their identities.
func addIdentityKeys(c *sqldb.Conn) error {
	type orgIdentity struct {
		identity.Identity
		orgID int64
	}
	identities, err := sqldb.All(c, func(row txn.Scanner) (i orgIdentity, err error) {
		i.Kind = identity.KeyIdentity
		return i, row.Scan(&i.ID, &i.orgID, &i.Fingerprint)
	}, "SELECT identity_id, org_id, fingerprint FROM identities WHERE kind = 'key'")
	if err != nil {
		return err
	}

	err = c.Run("CREATE TEMP TABLE identity_keys (identity_id TEXT PRIMARY KEY, key_id INTEGER NOT NULL)")
	if err != nil {
		return err
	}
	for _, i := range identities {
		digest, err := i.KeyDigest()
		if err != nil {
			return fmt.Errorf("identity %s: %w", i.ID, err)
		}
		key, err := keyRow(c, i.orgID, digest)
		if err != nil {
			return err
		}
		if _, err := c.Exec("INSERT INTO identity_keys (identity_id, key_id) VALUES (?, ?)", i.ID, key); err != nil {
			return err
		}
	}

	return c.Run(`
UPDATE attestations SET key_id = k.key_id FROM identity_keys k WHERE k.identity_id = attestations.identity_id;
DROP TABLE identity_keys`)
}

// keyRow returns the row id of a key, and inserts the key if it is missing.
func keyRow(c *sqldb.Conn, orgID int64, digest [32]byte) (id int64, err error) {
	_, err = c.Exec("INSERT INTO keys (org_id, digest) VALUES (?, ?) ON CONFLICT (org_id, digest) DO NOTHING",
		orgID, digest[:])
	if err != nil {
		return 0, err
	}
	return id, c.Row("SELECT id FROM keys WHERE org_id = ? AND digest = ?", orgID, digest[:]).Scan(&id)
}

// certifiedBatch is the number of envelopes read by one query.
const certifiedBatch = 500

// addCertifiedKeys sets the keys of attestations that were signed with a certificate
// that chains to a root. The certificate is in the envelope.
func addCertifiedKeys(c *sqldb.Conn) error {
	type signed struct {
		id, orgID int64
		digest    [32]byte
	}

	for last := int64(0); ; {
		list, err := sqldb.All(c, func(row txn.Scanner) (s signed, err error) {
			var body []byte
			if err := row.Scan(&s.id, &s.orgID, &body); err != nil {
				return s, err
			}
			digest, ok, err := attestation.CertifiedKey(body)
			if err == nil && !ok {
				err = fmt.Errorf("attestation %d: no certificate in its envelope", s.id)
			}
			s.digest = digest
			return s, err
		}, `
SELECT a.id, r.org_id, e.body
FROM attestations a JOIN repos r ON r.id = a.repo_id JOIN envelopes e ON e.attestation_id = a.id
WHERE a.key_id = 0 AND a.id > ? ORDER BY a.id LIMIT ?`, last, certifiedBatch)
		if err != nil || len(list) == 0 {
			return err
		}

		for _, s := range list {
			last = s.id
			key, err := keyRow(c, s.orgID, s.digest)
			if err != nil {
				return err
			}
			if _, err := c.Exec("UPDATE attestations SET key_id = ? WHERE id = ?", key, s.id); err != nil {
				return err
			}
		}
	}
}
