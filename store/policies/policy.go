package policies

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Policies are read without or with their contract.
const (
	selectVersion = "SELECT " + versionColumns + fromPolicies
	SelectPolicy  = "SELECT " + versionColumns + ", p.contract" + fromPolicies

	versionColumns = "p.version, o.name, r.name, p.digest, p.created_at, p.created_by"
	fromPolicies   = " FROM policies p JOIN repos r ON r.id = p.repo_id JOIN orgs o ON o.id = r.org_id "
)

func scanVersion(row txn.Scanner) (txn.Keyed[policy.Summary], error) { return scanVersionAnd(row) }

// scanVersionAnd reads the versionColumns, followed by the columns in rest.
func scanVersionAnd(row txn.Scanner, rest ...any) (v txn.Keyed[policy.Summary], err error) {
	s := &v.Row
	err = row.Scan(append([]any{&s.Version, &s.Org, &s.Repo, &s.Digest, &s.CreatedAt, &s.CreatedBy}, rest...)...)
	v.ID = int64(s.Version)
	return v, err
}

// ScanPolicy scans a version of a policy with its contract.
func ScanPolicy(row txn.Scanner) (p txn.Keyed[policy.Policy], err error) {
	var text []byte
	v, err := scanVersionAnd(row, &text)
	if err != nil {
		return p, err
	}
	p.ID, p.Row = v.ID, policy.Policy{
		Org: v.Row.Org, Repo: v.Row.Repo, Version: v.Row.Version,
		Digest: v.Row.Digest, CreatedAt: v.Row.CreatedAt, CreatedBy: v.Row.CreatedBy,
	}
	if p.Row.Contract, err = policy.ParseStored(text); err != nil {
		return p, fmt.Errorf("parse contract %d of %s/%s: %w", p.Row.Version, p.Row.Org, p.Row.Repo, err)
	}
	return p, nil
}

// InsertPolicy inserts a version of a contract. event is the row id of its event; 0 if it
// has none.
func InsertPolicy(t *txn.Tx, repoID int64, version int, contract policy.Contract, by string, event int64) error {
	_, err := t.Exec(`
INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by, event)
VALUES (?, ?, ?, ?, ?, ?, ?)`,
		repoID, version, contract.Digest(), contract.Canonical(), t.Now, by, event)
	if err != nil {
		return fmt.Errorf("insert policy: %w", err)
	}
	return nil
}

// Policy returns a version of a repo's policy; 0 means the active version.
func (po *Contracts) Policy(ctx context.Context, org, repo string, version int) (policy.Policy, error) {
	return txn.Read(ctx, po.db, txn.ByOrg(org), func(rd txn.Reader) (policy.Policy, error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return policy.Policy{}, err
		}
		wanted := cmp.Or(version, r.PolicyVersion)
		p, err := ScanPolicy(rd.Row(SelectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.ID, wanted))
		return p.Row, txn.Missing(err, "policy version %d not found in %s/%s: the latest is %d",
			wanted, org, repo, r.PolicyVersion)
	})
}

// Policies lists the versions of a repo's policy, newest first, without their contracts.
func (po *Contracts) Policies(ctx context.Context, org, repo string, q txn.Query) (ledger.Page[policy.Summary], error) {
	return txn.Read(ctx, po.db, txn.ByOrg(org), func(rd txn.Reader) (list ledger.Page[policy.Summary], err error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return list, err
		}
		l := rd.Listing("policies", r.ID)
		before, err := l.After(q, 1<<62)
		if err != nil {
			return list, err
		}
		p, err := txn.ReadPage(rd.Conn, scanVersion, q.Limit, selectVersion+`
WHERE p.repo_id = ? AND p.version < ? ORDER BY p.version DESC LIMIT ?`, r.ID, before)
		return p.Page(l), err
	})
}

// Contract returns the repo's active contract. The cache is keyed by digest, so it
// is never out of date.
func (po *Contracts) Contract(rd txn.Reader, r txn.Repo) (*policy.Contract, error) {
	if contract, ok := po.parsed.Get(r.PolicyDigest); ok {
		return contract, nil
	}
	var text []byte
	err := rd.Row("SELECT contract FROM policies WHERE repo_id = ? AND version = ?", r.ID, r.PolicyVersion).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("read contract %d of %s/%s: %w", r.PolicyVersion, r.Org, r.Name, err)
	}
	contract, err := policy.ParseStored(text)
	if err != nil {
		return nil, fmt.Errorf("parse contract %d of %s/%s: %w", r.PolicyVersion, r.Org, r.Name, err)
	}
	po.parsed.Put(r.PolicyDigest, &contract)
	return &contract, nil
}
