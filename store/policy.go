package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/txn"
)

// Policies are read without or with their contract.
const (
	selectVersion = "SELECT " + versionColumns + fromPolicies
	selectPolicy  = "SELECT " + versionColumns + ", p.contract" + fromPolicies

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

func scanPolicy(row txn.Scanner) (p txn.Keyed[policy.Policy], err error) {
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

// insertPolicy inserts a version of a contract. event is the row id of its event; 0 if it
// has none.
func (t *tx) insertPolicy(repoID int64, version int, contract policy.Contract, by string, event int64) error {
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
func (s *Store) Policy(ctx context.Context, org, repo string, version int) (policy.Policy, error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (policy.Policy, error) {
		r, err := rd.FindRepo(org, repo)
		if err != nil {
			return policy.Policy{}, err
		}
		wanted := cmp.Or(version, r.PolicyVersion)
		p, err := scanPolicy(rd.Row(selectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.ID, wanted))
		return p.Row, txn.Missing(err, "policy version %d not found in %s/%s: the latest is %d",
			wanted, org, repo, r.PolicyVersion)
	})
}

// Policies lists the versions of a repo's policy, newest first, without their contracts.
func (s *Store) Policies(ctx context.Context, org, repo string, q txn.Query) (ledger.Page[policy.Summary], error) {
	return read(ctx, s, txn.ByOrg(org), func(rd reader) (list ledger.Page[policy.Summary], err error) {
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

// SetPolicy makes the contract the next version of the repo's policy. If ifVersion is
// not 0 and not the active version, it returns CodePreconditionFailed. by is the name
// of the caller. All commits of the repo are then settled, in the background.
func (s *Store) SetPolicy(
	ctx context.Context, org, repo string, contract policy.Contract, ifVersion int, by string,
) (policy.Policy, error) {
	return write(ctx, s, org, func(t *tx) (p policy.Policy, err error) {
		d, err := t.writableDeriver(org, repo)
		if err != nil {
			return p, err
		}
		r := d.repo
		if ifVersion != 0 && ifVersion != r.PolicyVersion {
			return p, ledger.Errorf(ledger.CodePreconditionFailed,
				"the active policy is version %d, not %d: read it again", r.PolicyVersion, ifVersion)
		}

		if err := contract.CheckSize(d.contract.Size()); err != nil {
			return p, err
		}

		version := r.PolicyVersion + 1
		event, err := t.s.Journal.AppendPolicy(t.kernel, r, version, contract, by)
		if err != nil {
			return p, err
		}
		if err := t.insertPolicy(r.ID, version, contract, by, event); err != nil {
			return p, err
		}
		_, err = t.Exec("UPDATE repos SET policy_version = ?, policy_digest = ? WHERE id = ?",
			version, contract.Digest(), r.ID)
		if err != nil {
			return p, fmt.Errorf("activate policy: %w", err)
		}

		if err := t.s.jobs.Later(t.kernel, r.ID, backlog.Settle, 0, ledger.Cause{Type: ledger.CausePolicy}); err != nil {
			return p, err
		}
		if !d.contract.Radar.Covers(contract.Radar) {
			if err := t.markAllTips(r.ID); err != nil {
				return p, err
			}
		}

		row, err := scanPolicy(t.Row(selectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.ID, version))
		if err != nil {
			return p, fmt.Errorf("read policy: %w", err)
		}
		return row.Row, t.s.Journal.Audit(t.kernel, r.OrgID, r.Org, events.Audited{
			Action: ledger.AuditPolicyApplied, Repo: r.Name, Target: r.Name,
			Before: policyFields(r.PolicyVersion, r.PolicyDigest), After: policyFields(version, contract.Digest()),
		})
	})
}
