package store

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// migrationSteps returns the functions that migrations run in addition to their SQL,
// by the schema version that they migrate to.
func migrationSteps() map[int]func(*sqldb.Conn) error {
	return map[int]func(*sqldb.Conn) error{6: addKeysAndFolds, 9: addPeople, 10: addTrust}
}

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

// addTrust fills the tables that schema version 10 adds.
func addTrust(c *sqldb.Conn) error {
	if err := addSignerNames(c); err != nil {
		return err
	}
	if err := addDeployments(c); err != nil {
		return fmt.Errorf("add deployments: %w", err)
	}
	return nil
}

// addSignerNames stores the names of all signers of all orgs.
func addSignerNames(c *sqldb.Conn) error {
	type signer struct {
		orgID, id int64
		names     string // one per line
	}
	const query = `
SELECT org_id, id, cn FROM signers
UNION
SELECT s.org_id, s.id, i.email FROM identities i JOIN signers s ON s.org_id = i.org_id AND s.dn = i.dn
WHERE i.kind = 'key' AND i.email <> ''
UNION
SELECT s.org_id, s.id, a.emails FROM (SELECT DISTINCT signer_id, emails FROM attestations WHERE emails <> '') a
JOIN signers s ON s.id = a.signer_id`
	named, err := sqldb.All(c, func(row txn.Scanner) (s signer, err error) {
		return s, row.Scan(&s.orgID, &s.id, &s.names)
	}, query)
	if err != nil {
		return fmt.Errorf("read the names of signers: %w", err)
	}

	for _, s := range named {
		for name := range strings.SplitSeq(s.names, "\n") {
			if name = identity.FoldName(name); name == "" {
				continue
			}
			if _, err := signers.AddSignerName(c, s.orgID, s.id, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// addDeployments stores the deployments of all repos. Under which policy earlier ones were
// recorded is not known. If the present policy has a DEPLOYED requirement that names the
// predicate, a pass counts if it made its commit DEPLOYED, or found it so.
func addDeployments(c *sqldb.Conn) error {
	type used struct {
		orgID, repoID, predicateID int64
		predicate                  string
		contract                   []byte
	}
	list, err := sqldb.All(c, func(row txn.Scanner) (u used, err error) {
		return u, row.Scan(&u.orgID, &u.repoID, &u.predicateID, &u.predicate, &u.contract)
	}, `
SELECT r.org_id, r.id, p.id, p.name, v.contract FROM repos r
JOIN policies v ON v.repo_id = r.id AND v.version = r.policy_version
JOIN predicates p ON p.org_id = r.org_id AND p.name >= 'deploy:' AND p.name < 'deploy;'
WHERE EXISTS (SELECT 1 FROM attestations WHERE repo_id = r.id AND predicate_id = p.id)`)
	if err != nil {
		return err
	}

	for _, u := range list {
		contract, err := policy.ParseStored(u.contract)
		if err != nil {
			return fmt.Errorf("parse contract of repo %d: %w", u.repoID, err)
		}
		required := contract.RequiresDeployment(u.predicate, attestation.ResultPredicateType)
		if err := addDeploymentsOf(c, u.orgID, u.repoID, u.predicateID, required); err != nil {
			return err
		}
	}
	return nil
}

// addDeploymentsOf stores the deployments of a repo to an environment.
func addDeploymentsOf(c *sqldb.Conn, orgID, repoID, predicateID int64, required bool) error {
	_, err := c.Exec(`
INSERT INTO deployments (repo_id, predicate_id, commit_id, attestation_id, required)
SELECT a.repo_id, a.predicate_id, a.commit_id, max(a.id), ? FROM attestations a
WHERE a.repo_id = ? AND a.predicate_id = ? AND a.status = ? AND (NOT ? OR EXISTS (SELECT 1 FROM transitions t
  WHERE t.commit_id = a.commit_id AND t.to_state = ?
  AND (t.cause_id = a.attestation_id OR a.while_promotable = 1 AND t.at <= a.recorded_at)))
GROUP BY a.commit_id`,
		required, repoID, predicateID, string(ledger.Pass), required, ledger.Deployed)
	if err != nil {
		return err
	}

	_, err = c.Exec(`
UPDATE deployments SET ended_id = coalesce((SELECT max(a.id) FROM attestations a
  WHERE a.commit_id = deployments.commit_id AND a.predicate_id = deployments.predicate_id
  AND a.id > deployments.attestation_id AND a.status NOT IN (?, ?) AND (NOT ? OR EXISTS (SELECT 1 FROM transitions t
    WHERE t.commit_id = a.commit_id AND t.from_state = ? AND t.cause_id = a.attestation_id))), 0)
WHERE repo_id = ? AND predicate_id = ?`,
		string(ledger.Pass), string(ledger.Recorded), required, ledger.Deployed, repoID, predicateID)
	if err != nil {
		return err
	}

	_, err = c.Exec(`
INSERT INTO environments (predicate_id, repo_id, org_id, latest_id)
SELECT predicate_id, repo_id, ?, max(max(attestation_id, ended_id)) FROM deployments
WHERE repo_id = ? AND predicate_id = ? GROUP BY predicate_id, repo_id`, orgID, repoID, predicateID)
	return err
}
