package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/txn"
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
	// archived and deleted report whether the repo or its org is. If it is deleted, org and
	// name are those before.
	archived, deleted bool
}

// checkWritable returns CodeArchived if the repo can only be read.
func (r *repoRow) checkWritable() error {
	switch {
	case r.deleted:
		return ledger.Errorf(ledger.CodeArchived, "repo %s/%s is deleted: restore it first", r.org, r.name)
	case r.archived:
		return ledger.Errorf(ledger.CodeArchived, "repo %s/%s is archived, it or its org: unarchive it first", r.org, r.name)
	}
	return nil
}

// distrusted is the part of subject.versions that stands for distrusts. No other change makes
// up for it.
func (r *repoRow) distrusted() int64 { return r.distrusts << 32 }

const selectRepoRow = `
SELECT r.id, o.id,
  CASE o.deleted_at WHEN 0 THEN o.name ELSE (SELECT f.name FROM former_names f
    WHERE f.org_id = o.id AND f.repo_id = 0 ORDER BY f.until_seq DESC LIMIT 1) END,
  CASE r.deleted_at WHEN 0 THEN r.name ELSE (SELECT f.name FROM former_names f
    WHERE f.org_id = o.id AND f.repo_id = r.id ORDER BY f.until_seq DESC LIMIT 1) END,
  r.default_branch, r.policy_version, r.policy_digest,
  o.keyring_version, r.webhook_events, EXISTS (SELECT 1 FROM violations WHERE repo_id = r.id AND closed_at = 0),
  o.distrusts, o.distrusting, r.archived_at + o.archived_at > 0, r.deleted_at + o.deleted_at > 0
FROM repos r JOIN orgs o ON o.id = r.org_id `

func (rd reader) findRepo(org, repo string) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE o.name = ? AND r.name = ?", org, repo))
	return r, rd.missingRepo(err, org, repo)
}

// missingRepo is missing for a repo. If a repo had the name, the error says so.
func (rd reader) missingRepo(err error, org, repo string) error {
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

// writableOrg returns the row id of an org, or CodeArchived if it can only be read.
func (rd reader) writableOrg(org string) (int64, error) {
	var id int64
	var archived bool
	err := rd.Row("SELECT id, archived_at + deleted_at > 0 FROM orgs WHERE name = ?", org).Scan(&id, &archived)
	if err == nil && archived {
		err = ledger.Errorf(ledger.CodeArchived, "org %s is archived: unarchive it first", org)
	}
	return id, missing(err, "org %s not found", org)
}

// writableRepo is findRepo, for a write. It returns CodeArchived if the repo can only be read.
func (rd reader) writableRepo(org, repo string) (repoRow, error) {
	r, err := rd.findRepo(org, repo)
	if err != nil {
		return r, err
	}
	return r, r.checkWritable()
}

func (rd reader) repoByID(id int64) (repoRow, error) {
	r, err := scanRepoRow(rd.Row(selectRepoRow+"WHERE r.id = ?", id))
	return r, missing(err, "repo %d not found", id)
}

func scanRepoRow(row txn.Scanner) (repoRow, error) {
	var r repoRow
	err := row.Scan(&r.id, &r.orgID, &r.org, &r.name, &r.defaultBranch, &r.policyVersion, &r.policyDigest,
		&r.keyringVersion, &r.webhookEvents, &r.violated, &r.distrusts, &r.distrusting, &r.archived, &r.deleted)
	r.keyringVersion = keyringVersion(r.orgID, r.keyringVersion)
	return r, err
}

// keyringVersion returns the version of an org's keyring, given the counter in its row. Another org
// never has the same, even one that gets the name of an org which was renamed.
func keyringVersion(orgID, counter int64) int64 { return (orgID-1)<<32 + counter }

// formerNames parses the former names of a row: the names, each with a colon and the number of
// events, separated by spaces.
func formerNames(text string) (list []ledger.FormerName, err error) {
	for _, field := range strings.Fields(text) {
		name, events, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(events, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("parse former names: %w", err)
		}
		list = append(list, ledger.FormerName{Name: name, Events: n})
	}
	return list, nil
}
