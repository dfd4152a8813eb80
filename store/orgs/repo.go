package orgs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// CreateRepo creates a repo with the default contract as version 1 of its policy. by
// is the name of the caller, for the policy's history.
func (or *Registry) CreateRepo(ctx context.Context, org string, n ledger.NewRepo, by string) (ledger.Repo, error) {
	if err := n.Check(); err != nil {
		return ledger.Repo{}, err
	}
	if n.DefaultBranch == "" {
		n.DefaultBranch = "main"
	}

	return txn.Write(ctx, or.db, sqldb.Write{Org: org}, func(t *txn.Tx) (ledger.Repo, error) {
		orgID, err := t.WritableOrg(org)
		if err != nil {
			return ledger.Repo{}, err
		}

		contract := policy.Default()
		id, err := t.Insert(`
INSERT INTO repos (org_id, name, default_branch, web_url, forge, created_at, mapping_version, policy_version,
  policy_digest)
VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)`,
			orgID, n.Name, n.DefaultBranch, n.WebURL, n.Forge, t.Now, attestation.MappingVersion, contract.Digest())
		if sqldb.ClassOf(err) == sqldb.Duplicate {
			return ledger.Repo{}, ledger.Errorf(ledger.CodeAlreadyExists,
				"repo %s/%s already exists (names are not case-sensitive)", org, n.Name)
		}
		if err != nil {
			return ledger.Repo{}, fmt.Errorf("insert repo: %w", err)
		}

		if err := policies.InsertPolicy(t, id, 1, contract, by, 0); err != nil {
			return ledger.Repo{}, err
		}
		repo, err := ScanRepo(t.Row(SelectRepo+"WHERE r.id = ?", id))
		if err != nil {
			return repo.Row, fmt.Errorf("read repo: %w", err)
		}
		return repo.Row, or.journal.Audit(t, orgID, org, events.Audited{
			Action: ledger.AuditRepoCreated, Repo: n.Name, Target: n.Name, After: repoFields(repo.Row),
		})
	})
}

// SelectRepo reads repos, with the number of commits in each state.
const SelectRepo = `
SELECT r.id, o.name, r.name, r.archived_at, r.deleted_at, r.purged_at,
  coalesce((SELECT string_agg(f.name || ':' || f.until_seq, ' ' ORDER BY f.until_seq) FROM former_names f
    WHERE f.org_id = o.id AND f.repo_id = r.id), ''),
  r.default_branch, r.web_url, r.forge, r.keep_envelopes, r.keep_events, r.keep_deliveries,
  r.policy_version, r.created_at, r.attestations,
  r.open_violations,
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 0), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 1), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 2), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 3), 0),
  coalesce((SELECT commits FROM repo_states WHERE repo_id = r.id AND state = 4), 0)
FROM repos r JOIN orgs o ON o.id = r.org_id `

// ScanRepo scans a row of SelectRepo.
func ScanRepo(row txn.Scanner) (txn.Keyed[ledger.Repo], error) {
	var r txn.Keyed[ledger.Repo]
	var counts [5]int64
	var former string
	var envelopes, events, deliveries int64
	err := row.Scan(&r.ID, &r.Row.Org, &r.Row.Name, &r.Row.ArchivedAt, &r.Row.DeletedAt, &r.Row.PurgedAt, &former,
		&r.Row.DefaultBranch, &r.Row.WebURL, &r.Row.Forge, &envelopes, &events, &deliveries,
		&r.Row.PolicyVersion, &r.Row.CreatedAt, &r.Row.Attestations, &r.Row.OpenViolations,
		&counts[0], &counts[1], &counts[2], &counts[3], &counts[4])
	if err == nil {
		r.Row.FormerNames, err = formerNames(former)
	}
	r.Row.Retention = ledger.Retention{
		Envelopes: milliseconds(envelopes), Events: milliseconds(events), Deliveries: milliseconds(deliveries),
	}
	r.Row.Commits = make(map[ledger.State]int64, len(counts))
	for _, state := range ledger.States() {
		r.Row.Commits[state] = counts[state]
	}
	return r, err
}

func milliseconds(n int64) ledger.Duration {
	return ledger.Duration(time.Duration(n) * time.Millisecond)
}

// Repo returns a repo by name.
func (or *Registry) Repo(ctx context.Context, org, repo string) (ledger.Repo, error) {
	return txn.Read(ctx, or.db, txn.ByOrg(org), func(rd txn.Reader) (ledger.Repo, error) {
		r, err := ScanRepo(rd.Row(SelectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
		if err != nil {
			return r.Row, rd.MissingRepo(err, org, repo)
		}
		r.Row.Unsettled, err = backlog.Unsettled(rd, r.ID)
		return r.Row, err
	})
}

// Repos lists the repos of an org that are not deleted, oldest first.
func (or *Registry) Repos(ctx context.Context, org string, q txn.Query) (ledger.Page[ledger.Repo], error) {
	return txn.ListOf(ctx, or.db, org, "repos", q, ScanRepo,
		SelectRepo+"WHERE r.org_id = ? AND r.deleted_at = 0 AND r.id > ? ORDER BY r.id LIMIT ?")
}

// DeletedRepos lists the deleted repos of an org, oldest first.
func (or *Registry) DeletedRepos(ctx context.Context, org string, q txn.Query) (ledger.Page[ledger.Repo], error) {
	return txn.ListOf(ctx, or.db, org, "deleted repos", q, ScanRepo,
		strings.Replace(SelectRepo, "FROM repos r", "FROM repos r /*+index repos_deleted*/", 1)+
			"WHERE r.org_id = ? AND r.deleted_at > 0 AND r.id > ? ORDER BY r.id LIMIT ?")
}
