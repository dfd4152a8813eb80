package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
)

// A contractCache holds parsed contracts by their digest: what it holds can
// never be out of date.
type contractCache struct {
	mu       sync.Mutex
	byDigest map[string]*ledger.Contract
}

// maxContracts bounds the cache; past it the cache starts anew.
const maxContracts = 1000

// contract returns the contract with the repo's active digest.
func (s *Store) contract(c *conn, r repoRow) (*ledger.Contract, error) {
	s.contracts.mu.Lock()
	defer s.contracts.mu.Unlock()
	if contract, ok := s.contracts.byDigest[r.policyDigest]; ok {
		return contract, nil
	}
	var text []byte
	err := c.row("SELECT contract FROM policies WHERE repo_id = ? AND version = ?", r.id, r.policyVersion).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("read contract %d of %s/%s: %w", r.policyVersion, r.org, r.name, err)
	}
	contract, err := ledger.ParseContract(text)
	if err != nil {
		return nil, fmt.Errorf("parse contract %d of %s/%s: %w", r.policyVersion, r.org, r.name, err)
	}
	if s.contracts.byDigest == nil || len(s.contracts.byDigest) >= maxContracts {
		s.contracts.byDigest = make(map[string]*ledger.Contract)
	}
	s.contracts.byDigest[r.policyDigest] = &contract
	return &contract, nil
}

const selectPolicy = `
SELECT p.version, o.name, r.name, p.digest, p.created_at, p.created_by, p.contract
FROM policies p JOIN repos r ON r.id = p.repo_id JOIN orgs o ON o.id = r.org_id `

func scanPolicy(row scanner) (keyed[ledger.Policy], error) {
	var p keyed[ledger.Policy]
	var text []byte
	err := row.Scan(&p.id, &p.row.Org, &p.row.Repo, &p.row.Digest, &p.row.CreatedAt, &p.row.CreatedBy, &text)
	if err != nil {
		return p, err
	}
	p.row.Version = int(p.id)
	if p.row.Contract, err = ledger.ParseContract(text); err != nil {
		return p, fmt.Errorf("parse contract %d of %s/%s: %w", p.row.Version, p.row.Org, p.row.Repo, err)
	}
	return p, nil
}

func (t *tx) insertPolicy(repoID int64, version int, contract ledger.Contract, by string) error {
	_, err := t.exec("INSERT INTO policies (repo_id, version, digest, contract, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?)",
		repoID, version, contract.Digest(), contract.Canonical(), t.now, by)
	if err != nil {
		return fmt.Errorf("insert policy: %w", err)
	}
	return nil
}

// Policy returns one version of a repo's policy, the active one for version 0.
func (s *Store) Policy(ctx context.Context, org, repo string, version int) (ledger.Policy, error) {
	var p keyed[ledger.Policy]
	err := s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		if version == 0 {
			version = r.policyVersion
		}
		p, err = scanPolicy(c.row(selectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.id, version))
		return missing(err, "version %d of the policy of %s/%s: the latest is %d", version, org, repo, r.policyVersion)
	})
	return p.row, err
}

// Policies lists the versions of a repo's policy, newest first.
func (s *Store) Policies(ctx context.Context, org, repo string, q Query) (list ledger.Page[ledger.Policy], err error) {
	before, err := q.after(1 << 62)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		r, err := findRepo(c, org, repo)
		if err != nil {
			return err
		}
		rows, err := all(c, scanPolicy, selectPolicy+"WHERE p.repo_id = ? AND p.version < ? ORDER BY p.version DESC LIMIT ?", r.id, before, q.Limit+1)
		list = page(rows, q.Limit)
		return err
	})
	return list, err
}

// SetPolicy makes the contract the next version of the repo's policy, if the
// active version is still ifVersion (0: whatever it is). The repo's commits
// are evaluated anew by Evaluate, also after a crash.
func (s *Store) SetPolicy(ctx context.Context, org, repo string, contract ledger.Contract, ifVersion int, by string) (ledger.Policy, error) {
	var p keyed[ledger.Policy]
	err := s.write(ctx, func(t *tx) error {
		r, err := findRepo(t.conn, org, repo)
		if err != nil {
			return err
		}
		if ifVersion != 0 && ifVersion != r.policyVersion {
			return ledger.Errorf(ledger.CodePreconditionFailed, "the policy is at version %d, not %d any more: read it again", r.policyVersion, ifVersion)
		}
		version := r.policyVersion + 1
		if err := t.insertPolicy(r.id, version, contract, by); err != nil {
			return err
		}
		if _, err := t.exec("UPDATE repos SET policy_version = ?, policy_digest = ? WHERE id = ?", version, contract.Digest(), r.id); err != nil {
			return fmt.Errorf("activate policy: %w", err)
		}
		if err := t.policyEvent(r, version, contract.Digest(), by); err != nil {
			return err
		}
		_, err = t.exec("INSERT INTO reevaluations (repo_id, version, done) VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET version = excluded.version, done = 0", r.id, version)
		if err != nil {
			return fmt.Errorf("ask for re-evaluation: %w", err)
		}
		p, err = scanPolicy(t.row(selectPolicy+"WHERE p.repo_id = ? AND p.version = ?", r.id, version))
		return err
	})
	if err == nil {
		s.wakeEvaluate()
	}
	return p.row, err
}
