package migrations

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
