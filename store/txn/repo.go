package txn

import (
	"database/sql"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
)

// Missing returns a CodeNotFound error with the given message if err is
// sql.ErrNoRows, and err otherwise.
func Missing(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Errorf(ledger.CodeNotFound, format, args...)
	}
	return err
}

// OrgID returns the row id of an org, or CodeNotFound.
func (rd Reader) OrgID(org string) (int64, error) {
	var id int64
	err := rd.Row("SELECT id FROM orgs WHERE name = ?", org).Scan(&id)
	return id, Missing(err, "org %s not found", org)
}

// A Repo holds the columns of a repo that operations inside the repo need.
type Repo struct {
	ID, OrgID     int64
	Org, Name     string
	DefaultBranch string
	WebURL        string
	PolicyVersion int
	PolicyDigest  string
	// KeyringVersion is the version of the org's keyring.
	KeyringVersion int64
	// WebhookEvents are the event types that the repo's active webhooks receive.
	WebhookEvents TypeSet
	// Violated reports whether the repo has open violations.
	Violated bool
	// Distrusts is how often evidence of the org was distrusted, and Distrusting reports
	// whether the table latest may still have some of it.
	Distrusts   int64
	Distrusting bool
	// archived and Deleted report whether the repo or its org is. If it is deleted, Org and
	// Name are those before.
	archived, Deleted bool
}

// CheckWritable returns CodeArchived if the repo can only be read.
func (r *Repo) CheckWritable() error {
	switch {
	case r.Deleted:
		return ledger.Errorf(ledger.CodeArchived, "repo %s/%s is deleted: restore it first", r.Org, r.Name)
	case r.archived:
		return ledger.Errorf(ledger.CodeArchived, "repo %s/%s is archived, it or its org: unarchive it first", r.Org, r.Name)
	}
	return nil
}

// SelectRepo selects repos r with their orgs o, for ScanRepo.
const SelectRepo = `
SELECT r.id, o.id,
  CASE o.deleted_at WHEN 0 THEN o.name ELSE (SELECT f.name FROM former_names f
    WHERE f.org_id = o.id AND f.repo_id = 0 ORDER BY f.until_seq DESC LIMIT 1) END,
  CASE r.deleted_at WHEN 0 THEN r.name ELSE (SELECT f.name FROM former_names f
    WHERE f.org_id = o.id AND f.repo_id = r.id ORDER BY f.until_seq DESC LIMIT 1) END,
  r.default_branch, r.web_url, r.policy_version, r.policy_digest,
  o.keyring_version, r.webhook_events, EXISTS (SELECT 1 FROM violations WHERE repo_id = r.id AND closed_at = 0),
  o.distrusts, o.distrusting, r.archived_at + o.archived_at > 0, r.deleted_at + o.deleted_at > 0
FROM repos r JOIN orgs o ON o.id = r.org_id `

// FindRepo returns a repo by its name, or CodeNotFound.
func (rd Reader) FindRepo(org, repo string) (Repo, error) {
	r, err := ScanRepo(rd.Row(SelectRepo+"WHERE o.name = ? AND r.name = ?", org, repo))
	return r, rd.MissingRepo(err, org, repo)
}

// MissingRepo is Missing for a repo. If a repo had the name, the error says so.
func (rd Reader) MissingRepo(err error, org, repo string) error {
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var name string
	switch err := rd.Row(selectRenamed, org, repo).Scan(&name); {
	case errors.Is(err, sql.ErrNoRows):
		return ledger.Errorf(ledger.CodeNotFound, "repo %s/%s not found", org, repo)
	case err != nil:
		return err
	case ledger.IsDeletedName(name):
		return ledger.Errorf(ledger.CodeNotFound, "repo %s/%s was deleted: an admin can restore %s", org, repo, name)
	}
	return ledger.Errorf(ledger.CodeNotFound, "repo %s/%s was renamed to %s", org, repo, name)
}

// selectRenamed reads the present name of the repo that had a name last. Its parameters are the
// names of the org and of the repo.
const selectRenamed = `
SELECT r.name FROM orgs o /*+ordered*/ JOIN former_names f /*+index former_names_by_name*/ ON f.org_id = o.id
/*+ordered*/ JOIN repos r ON r.id = f.repo_id
WHERE o.name = ? AND f.name = ? ORDER BY f.until_seq DESC LIMIT 1`

// WritableOrg returns the row id of an org, or CodeArchived if it can only be read.
func (rd Reader) WritableOrg(org string) (int64, error) {
	var id int64
	var archived bool
	err := rd.Row("SELECT id, archived_at + deleted_at > 0 FROM orgs WHERE name = ?", org).Scan(&id, &archived)
	if err == nil && archived {
		err = ledger.Errorf(ledger.CodeArchived, "org %s is archived: unarchive it first", org)
	}
	return id, Missing(err, "org %s not found", org)
}

// WritableRepo is FindRepo, for a write. It returns CodeArchived if the repo can only be read.
func (rd Reader) WritableRepo(org, repo string) (Repo, error) {
	r, err := rd.FindRepo(org, repo)
	if err != nil {
		return r, err
	}
	return r, r.CheckWritable()
}

// RepoByID returns a repo by its row id, or CodeNotFound.
func (rd Reader) RepoByID(id int64) (Repo, error) {
	r, err := ScanRepo(rd.Row(SelectRepo+"WHERE r.id = ?", id))
	return r, Missing(err, "repo %d not found", id)
}

// ScanRepo scans a row of SelectRepo.
func ScanRepo(row Scanner) (Repo, error) {
	var r Repo
	err := row.Scan(&r.ID, &r.OrgID, &r.Org, &r.Name, &r.DefaultBranch, &r.WebURL, &r.PolicyVersion, &r.PolicyDigest,
		&r.KeyringVersion, &r.WebhookEvents, &r.Violated, &r.Distrusts, &r.Distrusting, &r.archived, &r.Deleted)
	r.KeyringVersion = KeyringVersion(r.OrgID, r.KeyringVersion)
	return r, err
}

// KeyringVersion returns the version of an org's keyring, given the counter in its row. Another org
// never has the same, even one that gets the name of an org which was renamed.
func KeyringVersion(orgID, counter int64) int64 { return (orgID-1)<<32 + counter }
