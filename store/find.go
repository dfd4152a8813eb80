package store

import (
	"database/sql"
	"errors"

	"github.com/ledgerd/ledgerd/ledger"
)

// missing returns a CodeNotFound error with the given message if err is
// sql.ErrNoRows, and err otherwise.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Errorf(ledger.CodeNotFound, format, args...)
	}
	return err
}

func (rd reader) orgID(org string) (int64, error) {
	var id int64
	err := rd.Row("SELECT id FROM orgs WHERE name = ?", org).Scan(&id)
	return id, missing(err, "org %s not found", org)
}

// A repoRow holds the columns of a repo that operations inside the repo need.
type repoRow struct {
	id, orgID     int64
	org, name     string
	defaultBranch string
	policyVersion int
	policyDigest  string
	// keyringVersion is the version of the org's keyring.
	keyringVersion int64
	// webhookEvents are the event types that the repo's active webhooks receive.
	webhookEvents typeSet
	// violated reports whether the repo has open violations.
	violated bool
	// distrusts is how often evidence of the org was distrusted, and distrusting reports
	// whether the table latest may still have some of it.
	distrusts   int64
	distrusting bool
}

// distrusted is the part of subject.versions that stands for distrusts. No other change makes
// up for it.
func (r *repoRow) distrusted() int64 { return r.distrusts << 32 }

const selectRepoRow = `
SELECT r.id, o.id, o.name, r.name, r.default_branch, r.policy_version, r.policy_digest,
  o.keyring_version, r.webhook_events, EXISTS (SELECT 1 FROM violations WHERE repo_id = r.id AND closed_at = 0),
  o.distrusts, o.distrusting
FROM repos r JOIN orgs o ON o.id = r.org_id `

func (rd reader) findRepo(org, repo string) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE o.name = ? AND r.name = ?", org, repo))
	return r, missing(err, "repo %s/%s not found", org, repo)
}

func (rd reader) repoByID(id int64) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE r.id = ?", id))
	return r, missing(err, "repo %d not found", id)
}

func scanRepoRow(row scanner) (repoRow, error) {
	var r repoRow
	err := row.Scan(&r.id, &r.orgID, &r.org, &r.name, &r.defaultBranch, &r.policyVersion, &r.policyDigest,
		&r.keyringVersion, &r.webhookEvents, &r.violated, &r.distrusts, &r.distrusting)
	return r, err
}
