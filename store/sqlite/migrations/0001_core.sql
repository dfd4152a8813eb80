-- Times are Unix milliseconds. 0 means no time.

PRAGMA application_id = 0x6c646764; -- "ldgd"

CREATE TABLE orgs (
  id              INTEGER PRIMARY KEY,
  name            TEXT    NOT NULL UNIQUE,
  created_at      INTEGER NOT NULL,
  next_seq        INTEGER NOT NULL DEFAULT 0, -- the seq of the org's next event
  keyring_version INTEGER NOT NULL DEFAULT 0  -- incremented when an identity is added or revoked
) STRICT;

CREATE TABLE repos (
  id             INTEGER PRIMARY KEY,
  org_id         INTEGER NOT NULL REFERENCES orgs,
  name           TEXT    NOT NULL COLLATE NOCASE,
  default_branch TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  policy_version INTEGER NOT NULL,
  policy_digest  TEXT    NOT NULL,
  attestations   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, name)
) STRICT;

-- The number of commits of a repo in each state.
CREATE TABLE repo_states (
  repo_id INTEGER NOT NULL REFERENCES repos,
  state   INTEGER NOT NULL,
  commits INTEGER NOT NULL,
  PRIMARY KEY (repo_id, state)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  id           INTEGER PRIMARY KEY,
  token_id     TEXT    NOT NULL UNIQUE,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  name         TEXT    NOT NULL,
  scope        INTEGER NOT NULL,
  hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the secret
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL DEFAULT 0,
  revoked_at   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tokens_by_org ON tokens (org_id);

CREATE TABLE identities (
  id          INTEGER PRIMARY KEY,
  identity_id TEXT    NOT NULL UNIQUE,
  org_id      INTEGER NOT NULL REFERENCES orgs,
  kind        TEXT    NOT NULL,
  dn          TEXT    NOT NULL,
  email       TEXT    NOT NULL,
  pem         TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  not_after   INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  revoked_at  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX identities_by_org ON identities (org_id);
CREATE UNIQUE INDEX identities_active ON identities (org_id, kind, fingerprint) WHERE revoked_at = 0;

CREATE TABLE policies (
  repo_id    INTEGER NOT NULL REFERENCES repos,
  version    INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  contract   BLOB    NOT NULL, -- canonical JSON
  created_at INTEGER NOT NULL,
  created_by TEXT    NOT NULL,
  PRIMARY KEY (repo_id, version)
) STRICT, WITHOUT ROWID;

-- Repos whose commits are being re-evaluated after a policy change. Commits with
-- ids up to done are finished.
CREATE TABLE reevaluations (
  repo_id INTEGER PRIMARY KEY REFERENCES repos,
  version INTEGER NOT NULL,
  done    INTEGER NOT NULL
) STRICT;

CREATE TABLE commits (
  id             INTEGER PRIMARY KEY,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  sha            TEXT    NOT NULL,
  state          INTEGER NOT NULL,
  state_since    INTEGER NOT NULL,
  registered_at  INTEGER NOT NULL,
  policy_version INTEGER NOT NULL,
  expires        INTEGER NOT NULL DEFAULT 0, -- when the next evidence that counts expires
  attestations   INTEGER NOT NULL DEFAULT 0,
  branch         TEXT    NOT NULL DEFAULT '',
  target         TEXT    NOT NULL DEFAULT '',
  base           TEXT    NOT NULL DEFAULT '',
  author_name    TEXT    NOT NULL DEFAULT '',
  author_email   TEXT    NOT NULL DEFAULT '',
  message        TEXT    NOT NULL DEFAULT '',
  committed_at   INTEGER NOT NULL DEFAULT 0,
  UNIQUE (repo_id, sha)
) STRICT;
CREATE INDEX commits_by_repo ON commits (repo_id, id);
CREATE INDEX commits_by_state ON commits (repo_id, state, id);
CREATE INDEX commits_by_branch ON commits (repo_id, branch, id) WHERE branch <> '';
CREATE INDEX commits_expiring ON commits (expires) WHERE expires > 0;

-- The long fields of a commit, in a table of their own so that lists and
-- derivations do not read them.
CREATE TABLE commit_details (
  commit_id INTEGER PRIMARY KEY REFERENCES commits,
  parents   BLOB NOT NULL, -- JSON arrays
  ancestors BLOB NOT NULL,
  contained BLOB NOT NULL,
  changes   BLOB           -- NULL if there is no change record
) STRICT;

CREATE TABLE predicates (
  id           INTEGER PRIMARY KEY,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  name         TEXT    NOT NULL,
  attestations INTEGER NOT NULL DEFAULT 0,
  last_at      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, name)
) STRICT;

CREATE TABLE signers (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  dn     TEXT    NOT NULL,
  cn     TEXT    NOT NULL,
  UNIQUE (org_id, dn)
) STRICT;
CREATE INDEX signers_by_cn ON signers (org_id, cn);

CREATE TABLE attestations (
  id               INTEGER PRIMARY KEY,
  attestation_id   TEXT    NOT NULL,
  repo_id          INTEGER NOT NULL REFERENCES repos,
  commit_id        INTEGER NOT NULL REFERENCES commits,
  predicate_id     INTEGER NOT NULL REFERENCES predicates,
  signer_id        INTEGER NOT NULL REFERENCES signers,
  own_type         INTEGER NOT NULL, -- 1: ledgerd's own predicate type; 0: the predicate is the type
  status           TEXT    NOT NULL,
  duration_ms      INTEGER NOT NULL,
  recorded_at      INTEGER NOT NULL,
  payload_digest   BLOB    NOT NULL,
  identity_id      TEXT    NOT NULL, -- the key or root that made the signer trusted
  emails           TEXT    NOT NULL, -- of the signer, one per line
  while_promotable INTEGER NOT NULL, -- 1: recorded while the commit was PROMOTABLE or DEPLOYED
  event_id         TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX attestations_by_payload ON attestations (repo_id, signer_id, payload_digest);
CREATE INDEX attestations_by_time ON attestations (repo_id, recorded_at);
CREATE INDEX attestations_by_predicate ON attestations (repo_id, predicate_id, recorded_at);
CREATE INDEX attestations_by_signer ON attestations (repo_id, signer_id, recorded_at);
CREATE INDEX attestations_by_commit ON attestations (commit_id, recorded_at);

-- Envelopes, byte for byte as posted.
CREATE TABLE envelopes (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  body           BLOB NOT NULL
) STRICT;

-- The latest attestation of each signer for each predicate of a commit. A
-- derivation reads no others.
CREATE TABLE latest (
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  PRIMARY KEY (commit_id, predicate_id, signer_id)
) STRICT, WITHOUT ROWID;

-- All events of all orgs. The body of an event is rendered once.
CREATE TABLE events (
  id       INTEGER PRIMARY KEY,
  org_id   INTEGER NOT NULL REFERENCES orgs,
  seq      INTEGER NOT NULL, -- from 0 in each org, without gaps
  event_id TEXT    NOT NULL UNIQUE,
  type     TEXT    NOT NULL,
  repo_id  INTEGER NOT NULL REFERENCES repos,
  at       INTEGER NOT NULL,
  body     BLOB    NOT NULL,
  UNIQUE (org_id, seq)
) STRICT;

CREATE TABLE transitions (
  commit_id  INTEGER NOT NULL REFERENCES commits,
  event      INTEGER NOT NULL REFERENCES events,
  from_state INTEGER NOT NULL,
  to_state   INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  PRIMARY KEY (commit_id, event)
) STRICT, WITHOUT ROWID;
