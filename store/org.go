package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
)

// CreateOrg makes an org.
func (s *Store) CreateOrg(ctx context.Context, name string) (ledger.Org, error) {
	if err := ledger.CheckOrg(name); err != nil {
		return ledger.Org{}, err
	}
	org := ledger.Org{Name: name}
	err := s.write(ctx, func(t *tx) error {
		org.CreatedAt = t.now
		_, err := t.exec("INSERT INTO orgs (name, created_at) VALUES (?, ?)", name, t.now)
		if isUnique(err) {
			return ledger.Errorf(ledger.CodeAlreadyExists, "the org %s exists already", name)
		}
		return err
	})
	return org, err
}

func scanOrg(row scanner) (keyed[ledger.Org], error) {
	var o keyed[ledger.Org]
	err := row.Scan(&o.id, &o.row.Name, &o.row.CreatedAt)
	return o, err
}

// Org returns the org of that name.
func (s *Store) Org(ctx context.Context, name string) (ledger.Org, error) {
	var o keyed[ledger.Org]
	err := s.read(ctx, func(c *conn) (err error) {
		o, err = scanOrg(c.row("SELECT id, name, created_at FROM orgs WHERE name = ?", name))
		return missing(err, "org %s", name)
	})
	return o.row, err
}

// Orgs lists the orgs, oldest first.
func (s *Store) Orgs(ctx context.Context, q Query) (list ledger.Page[ledger.Org], err error) {
	after, err := q.after(0)
	if err != nil {
		return list, err
	}
	err = s.read(ctx, func(c *conn) error {
		rows, err := all(c, scanOrg, "SELECT id, name, created_at FROM orgs WHERE id > ? ORDER BY id LIMIT ?", after, q.Limit+1)
		list = page(rows, q.Limit)
		return err
	})
	return list, err
}

// missing turns sql.ErrNoRows into CodeNotFound: what names what there is not.
func missing(err error, what string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Errorf(ledger.CodeNotFound, "there is no "+what, args...)
	}
	return err
}

func orgID(c *conn, org string) (int64, error) {
	var id int64
	err := c.row("SELECT id FROM orgs WHERE name = ?", org).Scan(&id)
	return id, missing(err, "org %s", org)
}

// CreateRepo makes a repo with the default contract as version 1 of its policy.
func (s *Store) CreateRepo(ctx context.Context, org string, n ledger.NewRepo, by string) (ledger.Repo, error) {
	if err := ledger.CheckRepo(n.Name); err != nil {
		return ledger.Repo{}, err
	}
	if n.DefaultBranch == "" {
		n.DefaultBranch = "main"
	}
	var repo keyed[ledger.Repo]
	err := s.write(ctx, func(t *tx) error {
		orgID, err := orgID(t.conn, org)
		if err != nil {
			return err
		}
		contract := ledger.DefaultContract()
		id, err := t.insert(`INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest) VALUES (?, ?, ?, ?, 1, ?)`,
			orgID, n.Name, n.DefaultBranch, t.now, contract.Digest())
		if isUnique(err) {
			return ledger.Errorf(ledger.CodeAlreadyExists, "the repo %s/%s exists already (upper and lower case count as the same)", org, n.Name)
		}
		if err != nil {
			return fmt.Errorf("insert repo: %w", err)
		}
		if err := t.insertPolicy(id, 1, contract, by); err != nil {
			return err
		}
		repo, err = scanRepo(t.row(selectRepo+"WHERE r.id = ?", id))
		return err
	})
	return repo.row, err
}

// One column for the count of each state.
const selectRepo = `
SELECT r.id, o.name, r.name, r.default_branch, r.policy_version, r.created_at, r.attestations,
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 0), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 1), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 2), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 3), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 4), 0)
FROM repos r JOIN orgs o ON o.id = r.org_id `

func scanRepo(row scanner) (keyed[ledger.Repo], error) {
	var r keyed[ledger.Repo]
	var counts [5]int64
	err := row.Scan(&r.id, &r.row.Org, &r.row.Name, &r.row.DefaultBranch, &r.row.PolicyVersion, &r.row.CreatedAt, &r.row.Attestations,
		&counts[0], &counts[1], &counts[2], &counts[3], &counts[4])
	r.row.Commits = make(map[ledger.State]int64, len(counts))
	for _, state := range ledger.States() {
		r.row.Commits[state] = counts[state]
	}
	return r, err
}

// Repo returns the repo of that name.
func (s *Store) Repo(ctx context.Context, org, repo string) (ledger.Repo, error) {
	var r keyed[ledger.Repo]
	err := s.read(ctx, func(c *conn) (err error) {
		r, err = scanRepo(c.row(selectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
		return missing(err, "repo %s/%s", org, repo)
	})
	return r.row, err
}

// Repos lists the repos of an org, oldest first.
func (s *Store) Repos(ctx context.Context, org string, q Query) (ledger.Page[ledger.Repo], error) {
	return listOf(ctx, s, org, q, scanRepo, selectRepo+"WHERE r.org_id = ? AND r.id > ? ORDER BY r.id LIMIT ?")
}

// A repoRow is what writes and reads inside a repo need to know of it.
type repoRow struct {
	id, orgID     int64
	org, name     string
	defaultBranch string
	policyVersion int
	policyDigest  string
	// keyringVersion is the org's.
	keyringVersion int64
	// webhookEvents are the types that any of its active webhooks wants.
	webhookEvents typeSet
}

func findRepo(c *conn, org, repo string) (repoRow, error) {
	return scanRepoRow(c.row(`
SELECT r.id, o.id, o.name, r.name, r.default_branch, r.policy_version, r.policy_digest, o.keyring_version, r.webhook_events
FROM repos r JOIN orgs o ON o.id = r.org_id WHERE o.name = ? AND r.name = ?`, org, repo), org+"/"+repo)
}

func repoByID(c *conn, id int64) (repoRow, error) {
	return scanRepoRow(c.row(`
SELECT r.id, o.id, o.name, r.name, r.default_branch, r.policy_version, r.policy_digest, o.keyring_version, r.webhook_events
FROM repos r JOIN orgs o ON o.id = r.org_id WHERE r.id = ?`, id), fmt.Sprint(id))
}

func scanRepoRow(row scanner, what string) (repoRow, error) {
	var r repoRow
	err := row.Scan(&r.id, &r.orgID, &r.org, &r.name, &r.defaultBranch, &r.policyVersion, &r.policyDigest, &r.keyringVersion, &r.webhookEvents)
	return r, missing(err, "repo %s", what)
}
