package migrations

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// addPeople stores the people among the signers and the registered keys of all orgs.
func addPeople(c *sqldb.Conn) error {
	type registered struct {
		identity.Identity
		orgID int64
	}
	identities, err := sqldb.All(c, func(row txn.Scanner) (r registered, err error) {
		r.Kind = identity.KeyIdentity
		return r, row.Scan(&r.ID, &r.orgID, &r.DN, &r.Fingerprint)
	}, "SELECT identity_id, org_id, dn, fingerprint FROM identities WHERE kind = 'key' ORDER BY id")
	if err != nil {
		return err
	}
	for _, r := range identities {
		digest, err := r.KeyDigest()
		if err != nil {
			return err
		}
		if err := addRegistered(c, r.orgID, r.DN, digest); err != nil {
			return fmt.Errorf("identity %s: %w", r.ID, err)
		}
	}

	type signed struct {
		orgID int64
		signers.Signature
	}
	signatures, err := sqldb.All(c, func(row txn.Scanner) (s signed, err error) {
		return s, row.Scan(&s.orgID, &s.SignerID, &s.KeyID)
	}, `
SELECT s.org_id, a.signer_id, a.key_id FROM (SELECT DISTINCT signer_id, key_id FROM attestations) a
JOIN signers s ON s.id = a.signer_id ORDER BY a.signer_id, a.key_id`)
	if err != nil {
		return err
	}
	for _, s := range signatures {
		if _, _, err := signers.JoinPeople(c, s.orgID, s.Signature); err != nil {
			return err
		}
	}
	return nil
}

// addRegistered stores that the name and the key of a registered identity are of one
// person.
func addRegistered(c *sqldb.Conn, orgID int64, name string, digest [32]byte) error {
	dn, err := identity.ParseDN(name)
	if err != nil {
		return err
	}
	keyID, err := keyRow(c, orgID, digest)
	if err != nil {
		return err
	}
	_, err = c.Exec("INSERT INTO signers (org_id, dn, cn, folded) VALUES (?, ?, ?, ?) ON CONFLICT (org_id, dn) DO NOTHING",
		orgID, dn.String(), dn.CN, dn.Fold())
	if err != nil {
		return err
	}
	var signerID int64
	if err := c.Row("SELECT id FROM signers WHERE org_id = ? AND dn = ?", orgID, dn.String()).Scan(&signerID); err != nil {
		return err
	}
	_, _, err = signers.JoinPeople(c, orgID, signers.Signature{SignerID: signerID, KeyID: keyID})
	return err
}
