package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// CreateOrg makes an org.
func (s *Store) CreateOrg(ctx context.Context, name string) (ledger.Org, error) {
	if err := ledger.CheckOrg(name); err != nil {
		return ledger.Org{}, err
	}
	return write(ctx, s, func(t *tx) (ledger.Org, error) {
		_, err := t.Exec("INSERT INTO orgs (name, created_at) VALUES (?, ?)", name, t.now)
		if sqldb.ClassOf(err) == sqldb.Duplicate {
			err = ledger.Errorf(ledger.CodeAlreadyExists, "the org %s exists already", name)
		}
		return ledger.Org{Name: name, CreatedAt: t.now}, err
	})
}

func scanOrg(row scanner) (keyed[ledger.Org], error) {
	var o keyed[ledger.Org]
	err := row.Scan(&o.id, &o.row.Name, &o.row.CreatedAt)
	return o, err
}

// Org returns the org of that name.
func (s *Store) Org(ctx context.Context, name string) (ledger.Org, error) {
	return read(ctx, s, func(rd reader) (ledger.Org, error) {
		o, err := scanOrg(rd.Row("SELECT id, name, created_at FROM orgs WHERE name = ?", name))
		return o.row, missing(err, "org %s", name)
	})
}

// Orgs lists the orgs, oldest first.
func (s *Store) Orgs(ctx context.Context, q Query) (ledger.Page[ledger.Org], error) {
	after, err := q.after(0)
	if err != nil {
		return ledger.Page[ledger.Org]{}, err
	}
	return read(ctx, s, func(rd reader) (ledger.Page[ledger.Org], error) {
		rows, err := all(rd, scanOrg, "SELECT id, name, created_at FROM orgs WHERE id > ? ORDER BY id LIMIT ?", after, q.Limit+1)
		return page(rows, q.Limit), err
	})
}

// missing turns sql.ErrNoRows into CodeNotFound: what names what there is not.
func missing(err error, what string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Errorf(ledger.CodeNotFound, "there is no "+what, args...)
	}
	return err
}

func (rd reader) orgID(org string) (int64, error) {
	var id int64
	err := rd.Row("SELECT id FROM orgs WHERE name = ?", org).Scan(&id)
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
	return write(ctx, s, func(t *tx) (ledger.Repo, error) {
		orgID, err := t.orgID(org)
		if err != nil {
			return ledger.Repo{}, err
		}
		contract := ledger.DefaultContract()
		id, err := t.Insert(`INSERT INTO repos (org_id, name, default_branch, created_at, policy_version, policy_digest) VALUES (?, ?, ?, ?, 1, ?)`,
			orgID, n.Name, n.DefaultBranch, t.now, contract.Digest())
		if sqldb.ClassOf(err) == sqldb.Duplicate {
			return ledger.Repo{}, ledger.Errorf(ledger.CodeAlreadyExists, "the repo %s/%s exists already (upper and lower case count as the same)", org, n.Name)
		}
		if err != nil {
			return ledger.Repo{}, fmt.Errorf("insert repo: %w", err)
		}
		if err := t.insertPolicy(id, 1, contract, by); err != nil {
			return ledger.Repo{}, err
		}
		repo, err := scanRepo(t.Row(selectRepo+"WHERE r.id = ?", id))
		return repo.row, err
	})
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
	return read(ctx, s, func(rd reader) (ledger.Repo, error) {
		r, err := scanRepo(rd.Row(selectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
		return r.row, missing(err, "repo %s/%s", org, repo)
	})
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

const selectRepoRow = `
SELECT r.id, o.id, o.name, r.name, r.default_branch, r.policy_version, r.policy_digest, o.keyring_version, r.webhook_events
FROM repos r JOIN orgs o ON o.id = r.org_id `

func (rd reader) findRepo(org, repo string) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE o.name = ? AND r.name = ?", org, repo))
	return r, missing(err, "repo %s/%s", org, repo)
}

func (rd reader) repoByID(id int64) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE r.id = ?", id))
	return r, missing(err, "repo %d", id)
}

func scanRepoRow(row scanner) (repoRow, error) {
	var r repoRow
	err := row.Scan(&r.id, &r.orgID, &r.org, &r.name, &r.defaultBranch, &r.policyVersion, &r.policyDigest, &r.keyringVersion, &r.webhookEvents)
	return r, err
}
