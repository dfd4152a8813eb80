package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// undoBacklog makes a database one of schema version 20: it undoes 0024_changes.sql, 0023_history.sql,
// 0022_authorization.sql and 0021_standing.sql.
const undoBacklog = `
DROP TABLE change_records;
DROP INDEX commits_with_gap;
ALTER TABLE commits DROP COLUMN gap;
UPDATE commits SET basis = basis + (distrusts << 32);
ALTER TABLE commits DROP COLUMN distrusts;
ALTER TABLE merge_sides DROP COLUMN met;
ALTER TABLE merge_sides RENAME TO merge_sources;
DROP INDEX merges_by_parent;
ALTER TABLE merges DROP COLUMN parent_id;
ALTER TABLE attestations DROP COLUMN base;
DROP TABLE ancestors;
DROP TABLE clock;
CREATE TABLE clock (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  behind_since INTEGER NOT NULL, -- the wall clock when it was first seen far behind; 0: it is not
  put_right_at INTEGER NOT NULL, -- the time to which the clock was put back, or later; 0: stamps are not ahead
  ahead_until  INTEGER NOT NULL, -- the times in ids may be ahead of the clock up to here
  pending      INTEGER NOT NULL  -- 1: times later than put_right_at are still to be corrected
) STRICT;
CREATE TABLE expirations (
  at         INTEGER NOT NULL,
  commit_id  INTEGER NOT NULL, -- without a foreign key, which would need an index
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  PRIMARY KEY (at, commit_id)
) STRICT, WITHOUT ROWID;
ALTER TABLE webhooks DROP COLUMN auth_header; ALTER TABLE overlaps RENAME COLUMN announced TO told;
DROP INDEX deployments_by_commit; ALTER TABLE commits DROP COLUMN standing;
ALTER TABLE repos DROP COLUMN mapping_version; ALTER TABLE repos DROP COLUMN remapped_to; DROP TABLE backlog;
CREATE TABLE reevaluations (
  repo_id INTEGER PRIMARY KEY REFERENCES repos,
  version INTEGER NOT NULL,
  done    INTEGER NOT NULL
) STRICT;
CREATE TABLE rederivations (
  repo_id    INTEGER PRIMARY KEY REFERENCES repos,
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  done       INTEGER NOT NULL
) STRICT;
CREATE TABLE unlogged_commits (
  done INTEGER NOT NULL, -- the row id of the last commit that was logged
  last INTEGER NOT NULL
) STRICT;
CREATE TABLE remapping (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL, -- of the rules
  below   INTEGER NOT NULL, -- attestations with row ids below this are still to be mapped
  total   INTEGER NOT NULL, -- the first value of below
  changed INTEGER NOT NULL  -- the number of attestations whose outcome has changed
) STRICT;
CREATE TABLE closings (
  id           INTEGER PRIMARY KEY,
  repo_id      INTEGER NOT NULL REFERENCES repos,
  predicate_id INTEGER NOT NULL REFERENCES predicates,
  commit_id    INTEGER NOT NULL, -- 0: of all commits
  up_to        INTEGER NOT NULL,
  closed_at    INTEGER NOT NULL,
  closed_how   TEXT    NOT NULL,
  closed_by    TEXT    NOT NULL
) STRICT;
CREATE INDEX closings_by_predicate ON closings (repo_id, predicate_id);
CREATE TABLE inheritances (
  tree_id    INTEGER NOT NULL, -- 0: a source
  source_id  INTEGER NOT NULL, -- 0: a tree
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  done       INTEGER NOT NULL,
  again      INTEGER NOT NULL,
  PRIMARY KEY (tree_id, source_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE distrusts (
  identity_id    TEXT    PRIMARY KEY,
  org_id         INTEGER NOT NULL,
  since          INTEGER NOT NULL,
  repo_id        INTEGER NOT NULL,
  at             INTEGER NOT NULL, -- the recorded_at of an attestation
  attestation_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX commits_expiring ON commits (expires) WHERE expires > 0;
ALTER TABLE tokens DROP COLUMN client; ALTER TABLE tokens DROP COLUMN client_at;
ALTER TABLE orgs DROP COLUMN unlogged_settings;
CREATE TABLE prunings (
  repo_id      INTEGER PRIMARY KEY REFERENCES repos,
  envelopes_at INTEGER NOT NULL DEFAULT -1, -- when the attestation was recorded
  envelope     INTEGER NOT NULL DEFAULT 0,  -- the row of the attestation
  events_seq   INTEGER NOT NULL DEFAULT -1,
  radar_seq    INTEGER NOT NULL DEFAULT -1
) STRICT;
CREATE INDEX repos_pruned ON repos (id) WHERE keep_envelopes + keep_events + purged_at > 0;
CREATE TABLE witnessed (
  origin     TEXT    NOT NULL PRIMARY KEY,
  size       INTEGER NOT NULL,
  root       BLOB    NOT NULL,
  checkpoint TEXT    NOT NULL, -- with the signatures of the log and of the witness
  seq        INTEGER NOT NULL UNIQUE,
  digest     BLOB    NOT NULL,
  previous   BLOB    NOT NULL, -- the digest before
  at         INTEGER NOT NULL
) STRICT;
CREATE TABLE witness_evidence (
  id         INTEGER PRIMARY KEY,
  origin     TEXT    NOT NULL,
  kind       TEXT    NOT NULL, -- fork or unproved
  size       INTEGER NOT NULL,
  root       BLOB    NOT NULL,
  checkpoint TEXT    NOT NULL, -- as it was submitted
  cosigned   TEXT    NOT NULL, -- the checkpoint that was cosigned at that time
  at         INTEGER NOT NULL,
  UNIQUE (origin, kind, size, root)
) STRICT;
PRAGMA user_version = 20;
`

// undoPages makes a database one of schema version 10: it also undoes 0020_once.sql, 0019_rollback.sql,
// 0018_boundaries.sql, 0017_members.sql, 0016_keyless.sql, 0015_retention.sql, 0014_operate.sql, 0013_operations.sql,
// 0012_proof.sql and 0011_pages.sql.
const undoPages = undoBacklog + `
DROP TABLE witnessed; DROP TABLE witness_evidence;
DROP TABLE provider_orgs; DROP TABLE cursor_key; DROP INDEX commits_expiring_by_repo;
ALTER TABLE attestations DROP COLUMN reason;
DROP INDEX signers_to_log; DROP INDEX signers_distinct;
ALTER TABLE signers DROP COLUMN individual; ALTER TABLE signers DROP COLUMN distinct_by;
CREATE TEMP TABLE links AS SELECT org_id, digest, commit_id, identity_id, signer_id, min(attestation_id) FROM artifacts
  GROUP BY 1, 2, 3, 4, 5;
DROP TABLE artifacts;
CREATE TABLE artifacts (
  org_id INTEGER NOT NULL REFERENCES orgs, digest BLOB NOT NULL, commit_id INTEGER NOT NULL,
  identity_id TEXT NOT NULL, signer_id INTEGER NOT NULL, attestation_id INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO artifacts SELECT * FROM links; DROP TABLE links;
DROP TABLE passkey_challenges; DROP TABLE passkeys;
ALTER TABLE identities DROP COLUMN emails; ALTER TABLE identities DROP COLUMN logins;
ALTER TABLE attestations DROP COLUMN assertion;
ALTER TABLE envelopes DROP COLUMN assertion;
DROP TABLE members; DROP TABLE member_rules; DROP TABLE token_repos; DROP TABLE review_drafts;
DROP INDEX tokens_by_member; DROP INDEX tokens_of_sign_ins; DROP INDEX tokens_listed; DROP INDEX tokens_signed_in;
DROP INDEX tokens_expiring;
ALTER TABLE tokens DROP COLUMN member_id; ALTER TABLE tokens DROP COLUMN is_sign_in;
ALTER TABLE tokens DROP COLUMN auth_time; ALTER TABLE tokens DROP COLUMN created_by;
ALTER TABLE tokens DROP COLUMN is_limited; ALTER TABLE tokens RENAME COLUMN permission TO scope;
UPDATE tokens SET scope = 3 WHERE scope = 4;
DROP TABLE trusted_roots; DROP TABLE exchange_rule_repos; DROP TABLE exchange_rules; DROP TABLE issuers;
DROP TABLE used_tokens; DROP TABLE cas; ALTER TABLE identities DROP COLUMN sigstore;
DROP INDEX tokens_by_rule; DROP INDEX tokens_exchanged;
ALTER TABLE tokens DROP COLUMN rule_id;
DROP TABLE prunings; DROP INDEX repos_pruned;
ALTER TABLE repos DROP COLUMN keep_envelopes; ALTER TABLE repos DROP COLUMN keep_events;
ALTER TABLE repos DROP COLUMN keep_deliveries; ALTER TABLE repos DROP COLUMN purged_at;
ALTER TABLE orgs DROP COLUMN purged_at;
DROP TABLE audits; DROP TABLE restores;
DROP TABLE receipt_keys; DROP TABLE tiles; DROP TABLE logs;
DROP INDEX events_of_org; DROP INDEX identities_to_log;
ALTER TABLE commits DROP COLUMN facts; DROP TABLE unlogged_commits;
ALTER TABLE identities DROP COLUMN event_id; ALTER TABLE policies DROP COLUMN event;
ALTER TABLE orgs DROP COLUMN log_id; ALTER TABLE orgs DROP COLUMN log_first;
ALTER TABLE orgs DROP COLUMN log_built; ALTER TABLE orgs DROP COLUMN log_public;
ALTER TABLE events DROP COLUMN salt; ALTER TABLE events DROP COLUMN leaf;
DROP INDEX commits_failing; DROP INDEX tips_conflicting; DROP INDEX webhooks_troubled;
DROP INDEX identities_expiring;
ALTER TABLE commits DROP COLUMN failing_since;
ALTER TABLE repos DROP COLUMN web_url; ALTER TABLE repos DROP COLUMN forge;
DROP TABLE former_names; DROP INDEX repos_deleted;
ALTER TABLE orgs DROP COLUMN archived_at; ALTER TABLE orgs DROP COLUMN deleted_at;
ALTER TABLE repos DROP COLUMN archived_at; ALTER TABLE repos DROP COLUMN deleted_at;
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, 'repo_id  INTEGER REFERENCES repos', 'repo_id  INTEGER NOT NULL REFERENCES repos')
WHERE type = 'table' AND name = 'events';
PRAGMA writable_schema = RESET;
PRAGMA user_version = 10`

// A database of the release before has its failures of the last 30 days marked in the
// background, while commits are registered.
func TestMigrationMarksFailures(t *testing.T) {
	for name, undo := range map[string]bool{"from version 5": false, "from version 10": true} {
		t.Run(name, func(t *testing.T) {
			path := UnpackV5(t)
			db := readRaw(t, path)
			shift := time.Since(WhenV5(t)).Milliseconds() // the migration reads the machine's clock
			_, err := db.Exec("UPDATE attestations SET recorded_at = recorded_at + ?", shift)
			must.OK(t, err)
			if undo {
				s, err := Open(t.Context(), path, Options{NoCopy: true})
				must.OK(t, err)
				must.OK(t, s.Settle(t.Context()))
				must.OK(t, s.Close())
				_, err = db.Exec(undoPages)
				must.OK(t, err)
			}
			must.OK(t, db.Close())

			s, err := Open(t.Context(), path, Options{NoCopy: true})
			must.OK(t, err)
			defer s.Close()
			registered := make(chan error)
			go func() { registered <- registerMany(t, s, 100) }()
			must.OK(t, s.Settle(t.Context()))
			must.OK(t, <-registered)

			db = readRaw(t, path)
			// Commit 14 runs, and would not be deployed now.
			got := texts(t, db, "SELECT id FROM commits WHERE failing_since > 0 ORDER BY id")
			if want := []string{"4", "12", "14"}; !slices.Equal(got, want) {
				t.Errorf("failing commits are %q, want %q", got, want)
			}
			if left := texts(t, db, "SELECT repo_id FROM backlog WHERE kind = 'settle'"); len(left) > 0 {
				t.Errorf("repos %q are still derived again", left)
			}
			if pages := texts(t, db, "SELECT web_url || forge FROM repos"); !slices.Equal(pages, []string{"", "", ""}) {
				t.Errorf("web pages of repos are %q, want none", pages)
			}
		})
	}
}

// registerMany registers n new commits, one after the other.
func registerMany(t *testing.T, s *Store, n int) error {
	for i := range n {
		sha := fmt.Sprintf("%040x", i+1)
		if _, _, err := s.Register(t.Context(), "acme", "api", sha, ledger.Registration{Branch: "new"}); err != nil {
			return err
		}
	}
	return nil
}
