-- Patterns of the predicates that an identity may attest, one per line; empty: all.
ALTER TABLE identities ADD COLUMN may TEXT NOT NULL DEFAULT '';
-- Of a root: the DNs that it may certify; empty: all.
ALTER TABLE identities ADD COLUMN dn_pattern TEXT NOT NULL DEFAULT '';

-- What registrations have ever claimed of a commit, and contracts ask for. Claims are
-- added, never replaced. Empty if there is no other than the one in the column that
-- holds the latest.
ALTER TABLE commits ADD COLUMN targets TEXT NOT NULL DEFAULT ''; -- one per line
-- A JSON array of those who wrote the commit with its author: committers, co-authors.
ALTER TABLE commits ADD COLUMN writers TEXT NOT NULL DEFAULT '';
-- The fingerprints of the SSH keys that signed the commit, one per line.
ALTER TABLE commits ADD COLUMN signing_keys TEXT NOT NULL DEFAULT '';
-- 1: a registration claims that the key signed a commit.
ALTER TABLE keys ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;
-- A JSON array of all changed paths; NULL: those of changes.
ALTER TABLE commit_details ADD COLUMN paths BLOB;
-- Equal for equal paths; empty: those of the release before, unchanged.
ALTER TABLE commit_details ADD COLUMN paths_key TEXT NOT NULL DEFAULT '';

-- The names and e-mail addresses that signers have ever had, in the form in which policies
-- compare them with authors.
CREATE TABLE signer_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  name      TEXT    NOT NULL,
  signer_id INTEGER NOT NULL REFERENCES signers,
  PRIMARY KEY (org_id, name, signer_id)
) STRICT, WITHOUT ROWID;

-- What administrators have corrected in a commit.
CREATE TABLE corrections (
  id        INTEGER PRIMARY KEY,
  commit_id INTEGER NOT NULL REFERENCES commits,
  at        INTEGER NOT NULL,
  by        TEXT    NOT NULL,
  field     TEXT    NOT NULL,
  before    TEXT    NOT NULL,
  after     TEXT    NOT NULL
) STRICT;
CREATE INDEX corrections_by_commit ON corrections (commit_id, id);

-- The expressions of contracts, and what each says of an attestation.
CREATE TABLE expressions (
  id   INTEGER PRIMARY KEY,
  text TEXT    NOT NULL UNIQUE
) STRICT;
CREATE TABLE verdicts (
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  expression_id  INTEGER NOT NULL REFERENCES expressions,
  verdict        INTEGER NOT NULL, -- 1: true
  error          TEXT    NOT NULL, -- why it could not be evaluated; empty if it was
  PRIMARY KEY (attestation_id, expression_id)
) STRICT, WITHOUT ROWID;

-- Deployments that did not count when they were recorded.
CREATE TABLE violations (
  id             INTEGER PRIMARY KEY,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  org_id         INTEGER NOT NULL REFERENCES orgs,
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  state          INTEGER NOT NULL, -- of the commit, before the deployment was recorded
  opened_at      INTEGER NOT NULL,
  missing        TEXT    NOT NULL, -- a JSON array of reasons
  closed_at      INTEGER NOT NULL DEFAULT 0,
  closed_how     TEXT    NOT NULL DEFAULT '', -- deployment, rollback or exception
  closed_by      TEXT    NOT NULL DEFAULT ''  -- the id of the attestation that closed it
) STRICT;
CREATE INDEX violations_by_commit ON violations (commit_id, id);
CREATE INDEX violations_by_repo ON violations (repo_id, id);
CREATE INDEX violations_by_org ON violations (org_id, id);
CREATE INDEX violations_open ON violations (repo_id, predicate_id, id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_commit ON violations (commit_id, predicate_id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_repo ON violations (repo_id, id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_org ON violations (org_id, id) WHERE closed_at = 0;

-- Violations that are closed, but too many to be marked as closed in one write: those that
-- are still open with an id up to up_to.
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

-- The events of violations, which are few among many others.
CREATE TABLE violation_events (
  org_id  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  repo_id INTEGER NOT NULL,
  event   INTEGER NOT NULL REFERENCES events,
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

-- All violations, and the open ones.
ALTER TABLE orgs ADD COLUMN violations INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orgs ADD COLUMN open_violations INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN open_violations INTEGER NOT NULL DEFAULT 0;

-- What exceptions say.
CREATE TABLE exceptions (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  commit_id      INTEGER NOT NULL REFERENCES commits,
  requirement    TEXT    NOT NULL,
  reason         TEXT    NOT NULL,
  ends_at        INTEGER NOT NULL
) STRICT;
CREATE INDEX exceptions_by_commit ON exceptions (commit_id, attestation_id);
CREATE INDEX exceptions_by_repo ON exceptions (repo_id, attestation_id);
CREATE INDEX exceptions_by_end ON exceptions (repo_id, ends_at, attestation_id);

-- The tables below do not reference commits: each update of a commit would look for its
-- rows in all of them.

-- Commit objects, as registered. Their hashes are the ids of the commits.
CREATE TABLE commit_objects (
  commit_id INTEGER PRIMARY KEY,
  object    BLOB NOT NULL
) STRICT;
-- The tree that the object names, in hex; empty if the object is not known. A commit with
-- a tree is proven.
ALTER TABLE commits ADD COLUMN tree TEXT NOT NULL DEFAULT '';
-- The row of its tree; 0 if no other commit of the repo has it.
ALTER TABLE commits ADD COLUMN tree_id INTEGER NOT NULL DEFAULT 0;
-- 1: somebody claims that it is a merge. 2: that it was merged. 3: both.
ALTER TABLE commits ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;
-- The sum of the versions of what its state was derived from: its tree, the commits that
-- it merges, and the revocations of the org.
ALTER TABLE commits ADD COLUMN basis INTEGER NOT NULL DEFAULT 0;
CREATE INDEX commits_by_tree ON commits (repo_id, tree, id) WHERE tree <> '';
CREATE INDEX commits_by_tree_id ON commits (tree_id, id) WHERE tree_id > 0;

-- Trees of several commits of a repo. The version grows whenever evidence of any of them
-- changes.
CREATE TABLE trees (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  commits INTEGER NOT NULL
) STRICT;
-- The latest attestation of each signer for each predicate and slot, of all commits with a
-- tree. stated: 0 for those without an outcome, which do not replace an outcome.
CREATE TABLE tree_latest (
  tree_id        INTEGER NOT NULL REFERENCES trees,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  slot           TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  stated         INTEGER NOT NULL,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  commit_id      INTEGER NOT NULL,
  failed         INTEGER NOT NULL, -- 1: a fail or error
  PRIMARY KEY (tree_id, predicate_id, slot, signer_id, stated)
) STRICT, WITHOUT ROWID;
CREATE INDEX tree_latest_failed ON tree_latest (tree_id) WHERE failed = 1;

-- Claims that a commit is a clean merge of its first parent with a source: the latest of each
-- person and source.
CREATE TABLE merges (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  commit_id      INTEGER NOT NULL,
  source_id      INTEGER NOT NULL,
  kind           TEXT    NOT NULL, -- merge or squash
  parent_state   INTEGER NOT NULL, -- of the first parent when the claim was recorded; 0 if it was not proven
  reason         TEXT    NOT NULL  -- why nothing carries; empty if parent_state decides
) STRICT;
CREATE INDEX merges_by_commit ON merges (commit_id, attestation_id);
CREATE INDEX merges_by_source ON merges (source_id, commit_id);
-- Commits that are sources of merges. The version grows whenever their evidence changes.
CREATE TABLE merge_sources (
  commit_id INTEGER PRIMARY KEY,
  version   INTEGER NOT NULL
) STRICT;
-- Trees and sources of merges whose evidence has changed: of the commits that inherit it,
-- those with ids up to done were derived again. again: 1 if it has changed since.
CREATE TABLE inheritances (
  tree_id    INTEGER NOT NULL, -- 0: a source
  source_id  INTEGER NOT NULL, -- 0: a tree
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  done       INTEGER NOT NULL,
  again      INTEGER NOT NULL,
  PRIMARY KEY (tree_id, source_id)
) STRICT, WITHOUT ROWID;

-- From when on evidence by the identity does not count, because its key was compromised; 0: never.
ALTER TABLE identities ADD COLUMN distrusted_since INTEGER NOT NULL DEFAULT 0;
-- How often evidence of the org was distrusted.
ALTER TABLE orgs ADD COLUMN distrusts INTEGER NOT NULL DEFAULT 0;
-- 1: the table latest may still have distrusted evidence, because the org has a row in distrusts.
ALTER TABLE orgs ADD COLUMN distrusting INTEGER NOT NULL DEFAULT 0;
-- Identities whose distrusted evidence is being replaced in latest. Attestations up to the
-- position (repo_id, at, attestation_id) are done.
CREATE TABLE distrusts (
  identity_id    TEXT    PRIMARY KEY,
  org_id         INTEGER NOT NULL,
  since          INTEGER NOT NULL,
  repo_id        INTEGER NOT NULL,
  at             INTEGER NOT NULL, -- the recorded_at of an attestation
  attestation_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which artifacts statements link with which commits: for each signer under an identity,
-- the first attestation that does.
CREATE TABLE artifacts (
  org_id         INTEGER NOT NULL REFERENCES orgs,
  digest         BLOB    NOT NULL, -- its length says which: 32 bytes SHA-256, 48 SHA-384, 64 SHA-512
  commit_id      INTEGER NOT NULL, -- these have no REFERENCES, which would take an index for each
  identity_id    TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL,
  attestation_id INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id)
) STRICT, WITHOUT ROWID;

-- Deployments that count, to environments: the latest of each commit for a predicate
-- deploy:NAME.
CREATE TABLE deployments (
  repo_id        INTEGER NOT NULL REFERENCES repos,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  commit_id      INTEGER NOT NULL,
  attestation_id INTEGER NOT NULL,
  required       INTEGER NOT NULL, -- 1: a DEPLOYED requirement named the predicate
  ended_id       INTEGER NOT NULL DEFAULT 0, -- the attestation that rolled it back; 0: none
  PRIMARY KEY (repo_id, predicate_id, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deployments_present ON deployments (repo_id, predicate_id, attestation_id) WHERE ended_id = 0;
CREATE INDEX deployments_ended ON deployments (repo_id, predicate_id, ended_id) WHERE ended_id > 0;

-- The environments of repos: those with deployments, even if none of them counted.
CREATE TABLE environments (
  predicate_id INTEGER NOT NULL REFERENCES predicates,
  repo_id      INTEGER NOT NULL REFERENCES repos,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  latest_id    INTEGER NOT NULL, -- the latest deployment or rollback
  PRIMARY KEY (predicate_id, repo_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX environments_by_repo ON environments (repo_id, latest_id);
CREATE INDEX environments_by_org ON environments (org_id, repo_id);
