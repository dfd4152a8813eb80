-- The schema of a new database. 'go test -run SchemaDigest -update' writes it from the migrations.
PRAGMA application_id = 0x6c646764;

CREATE TABLE orgs (
  id              INTEGER PRIMARY KEY,
  name            TEXT    NOT NULL UNIQUE,
  created_at      INTEGER NOT NULL,
  next_seq        INTEGER NOT NULL DEFAULT 0, -- the seq of the org's next event
  keyring_version INTEGER NOT NULL DEFAULT 0  -- incremented when an identity is added or revoked
, violations INTEGER NOT NULL DEFAULT 0, open_violations INTEGER NOT NULL DEFAULT 0, distrusts INTEGER NOT NULL DEFAULT 0, distrusting INTEGER NOT NULL DEFAULT 0, log_id INTEGER NOT NULL DEFAULT 0, log_first INTEGER NOT NULL DEFAULT 0, log_built INTEGER NOT NULL DEFAULT -1, log_public INTEGER NOT NULL DEFAULT 0, archived_at INTEGER NOT NULL DEFAULT 0, deleted_at INTEGER NOT NULL DEFAULT 0, purged_at INTEGER NOT NULL DEFAULT 0, unlogged_settings TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE repos (
  id             INTEGER PRIMARY KEY,
  org_id         INTEGER NOT NULL REFERENCES orgs,
  name           TEXT    NOT NULL COLLATE NOCASE,
  default_branch TEXT    NOT NULL,
  created_at     INTEGER NOT NULL,
  policy_version INTEGER NOT NULL,
  policy_digest  TEXT    NOT NULL,
  attestations   INTEGER NOT NULL DEFAULT 0, webhook_events INTEGER NOT NULL DEFAULT 0, open_violations INTEGER NOT NULL DEFAULT 0, web_url TEXT NOT NULL DEFAULT '', forge TEXT NOT NULL DEFAULT '', archived_at INTEGER NOT NULL DEFAULT 0, deleted_at INTEGER NOT NULL DEFAULT 0, keep_envelopes INTEGER NOT NULL DEFAULT 0, keep_events INTEGER NOT NULL DEFAULT 0, keep_deliveries INTEGER NOT NULL DEFAULT 0, purged_at INTEGER NOT NULL DEFAULT 0, mapping_version INTEGER NOT NULL DEFAULT 0, remapped_to INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, name)
) STRICT;

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
  permission        INTEGER NOT NULL,
  hash         BLOB    NOT NULL UNIQUE, -- SHA-256 of the secret
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL DEFAULT 0,
  revoked_at   INTEGER NOT NULL DEFAULT 0
, rule_id INTEGER NOT NULL DEFAULT 0, member_id INTEGER NOT NULL DEFAULT 0, is_sign_in INTEGER NOT NULL DEFAULT 0, auth_time INTEGER NOT NULL DEFAULT 0, created_by TEXT NOT NULL DEFAULT '', is_limited INTEGER NOT NULL DEFAULT 0, client TEXT NOT NULL DEFAULT '', client_at INTEGER NOT NULL DEFAULT 0) STRICT;

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
, may TEXT NOT NULL DEFAULT '', dn_pattern TEXT NOT NULL DEFAULT '', distrusted_since INTEGER NOT NULL DEFAULT 0, event_id TEXT NOT NULL DEFAULT '', sigstore TEXT NOT NULL DEFAULT '', emails TEXT NOT NULL DEFAULT '', logins TEXT NOT NULL DEFAULT '') STRICT;

CREATE INDEX identities_by_org ON identities (org_id);

CREATE UNIQUE INDEX identities_active ON identities (org_id, kind, fingerprint) WHERE revoked_at = 0;

CREATE TABLE policies (
  repo_id    INTEGER NOT NULL REFERENCES repos,
  version    INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  contract   BLOB    NOT NULL, -- canonical JSON
  created_at INTEGER NOT NULL,
  created_by TEXT    NOT NULL, event INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, version)
) STRICT, WITHOUT ROWID;

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
  committed_at   INTEGER NOT NULL DEFAULT 0, newest INTEGER NOT NULL DEFAULT 0, targets TEXT NOT NULL DEFAULT '', writers TEXT NOT NULL DEFAULT '', signing_keys TEXT NOT NULL DEFAULT '', tree TEXT NOT NULL DEFAULT '', tree_id INTEGER NOT NULL DEFAULT 0, merged INTEGER NOT NULL DEFAULT 0, basis INTEGER NOT NULL DEFAULT 0, failing_since INTEGER NOT NULL DEFAULT 0, facts BLOB NOT NULL DEFAULT x'', standing INTEGER NOT NULL DEFAULT 4,
  UNIQUE (repo_id, sha)
) STRICT;

CREATE INDEX commits_by_repo ON commits (repo_id, id);

CREATE INDEX commits_by_state ON commits (repo_id, state, id);

CREATE INDEX commits_by_branch ON commits (repo_id, branch, id) WHERE branch <> '';

CREATE TABLE commit_details (
  commit_id INTEGER PRIMARY KEY REFERENCES commits,
  parents   BLOB NOT NULL, -- JSON arrays
  ancestors BLOB NOT NULL,
  contained BLOB NOT NULL,
  changes   BLOB           -- NULL if there is no change record
, paths BLOB, paths_key TEXT NOT NULL DEFAULT '') STRICT;

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
  cn     TEXT    NOT NULL, folded TEXT NOT NULL DEFAULT '', person INTEGER NOT NULL DEFAULT 0, individual INTEGER NOT NULL DEFAULT 0, distinct_by INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, dn)
) STRICT;

CREATE INDEX signers_by_cn ON signers (org_id, cn);

CREATE TABLE envelopes (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  body           BLOB NOT NULL
, payload BLOB, payload_at INTEGER, assertion BLOB) STRICT;

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

CREATE TABLE webhooks (
  id              INTEGER PRIMARY KEY,
  webhook_id      TEXT    NOT NULL UNIQUE,
  repo_id         INTEGER NOT NULL REFERENCES repos,
  url             TEXT    NOT NULL,
  events          INTEGER NOT NULL, -- attestation 1 + state 2 + policy 4 + radar 8
  description     TEXT    NOT NULL,
  active          INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  changed_at      INTEGER NOT NULL,           -- when url or active last changed
  disabled_at     INTEGER NOT NULL DEFAULT 0,
  disabled_reason TEXT    NOT NULL DEFAULT '',
  failing_since   INTEGER NOT NULL DEFAULT 0, -- the first failure since the last success
  failures        INTEGER NOT NULL DEFAULT 0, -- the number of failures since failing_since
  secret          TEXT    NOT NULL,
  previous_secret TEXT    NOT NULL DEFAULT '',
  previous_until  INTEGER NOT NULL DEFAULT 0,
  deleted_at      INTEGER NOT NULL DEFAULT 0  -- its rows are deleted in the background, then the webhook
) STRICT;

CREATE INDEX webhooks_by_repo ON webhooks (repo_id, id) WHERE deleted_at = 0;

CREATE INDEX webhooks_active ON webhooks (id) WHERE active = 1;

CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at > 0;

CREATE TABLE outbox (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  event       INTEGER REFERENCES events, -- NULL: a ping
  ping        TEXT,                      -- the body of a ping, which is not an event of the ledger
  status      TEXT    NOT NULL,
  due_at      INTEGER NOT NULL,
  leased      INTEGER NOT NULL DEFAULT 0, -- 1 while a dispatcher attempts it
  attempts    INTEGER NOT NULL DEFAULT 0,
  tries       INTEGER NOT NULL DEFAULT 0, -- attempts since it was queued or redelivered
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL DEFAULT 0, -- 0 while pending
  PRIMARY KEY (webhook_id, delivery_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX outbox_by_event ON outbox (webhook_id, event);

CREATE INDEX outbox_due ON outbox (webhook_id, due_at) WHERE due_at > 0;

CREATE INDEX outbox_ended ON outbox (webhook_id, ended_at) WHERE ended_at > 0;

CREATE INDEX outbox_failed ON outbox (webhook_id, delivery_id) WHERE status = 'failed';

CREATE TABLE attempts (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  number      INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  status      INTEGER NOT NULL, -- the HTTP status of the response; 0 if there was no response
  error       TEXT    NOT NULL,
  request     BLOB    NOT NULL, -- JSON
  response    BLOB    NOT NULL, -- JSON
  PRIMARY KEY (webhook_id, delivery_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE tips (
  commit_id  INTEGER PRIMARY KEY REFERENCES commits,
  repo_id    INTEGER NOT NULL REFERENCES repos,
  sha        TEXT    NOT NULL,
  branch     TEXT    NOT NULL,
  flight     INTEGER NOT NULL,
  place      INTEGER NOT NULL, -- of two tips, the one with the greater place was registered later
  seq        INTEGER NOT NULL, -- grows whenever the radar scans a tip of the repo
  opened_at  INTEGER NOT NULL, -- when it came into flight
  ended_at   INTEGER NOT NULL DEFAULT 0,
  policy_version INTEGER NOT NULL, -- the contract version of the last scan
  lineage    TEXT    NOT NULL, -- the commits it is built on
  level      INTEGER NOT NULL DEFAULT 0, -- the highest level of its overlaps with earlier tips so far
  truncated  INTEGER NOT NULL DEFAULT 0 -- 1: there were more overlaps than are stored
) STRICT;

CREATE INDEX tips_by_branch ON tips (repo_id, branch) WHERE flight < 4;

CREATE INDEX tips_by_seq ON tips (repo_id, seq);

CREATE INDEX tips_by_place ON tips (repo_id, place) WHERE flight = 1;

CREATE INDEX tips_by_age ON tips (repo_id, opened_at) WHERE flight < 4;

CREATE INDEX tips_done ON tips (repo_id) WHERE flight IN (4, 5);

CREATE TABLE overlaps (
  later   INTEGER NOT NULL,
  earlier INTEGER NOT NULL,
  level   INTEGER NOT NULL,
  told    INTEGER NOT NULL, -- the highest level reported by an event; 0: none
  since   INTEGER NOT NULL,
  path    TEXT    NOT NULL, -- the path with the strongest overlap, and the reason
  reason  TEXT    NOT NULL,
  PRIMARY KEY (later, earlier)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  hash       BLOB    PRIMARY KEY, -- SHA-256 of the secret
  token_id   INTEGER NOT NULL REFERENCES tokens,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE INDEX tips_unseen ON tips (repo_id, opened_at) WHERE policy_version = 0 AND flight = 1;

CREATE TABLE keys (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  digest BLOB    NOT NULL, person INTEGER NOT NULL DEFAULT 0, claimed INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, digest)
) STRICT;

CREATE TABLE predicate_types (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  uri    TEXT    NOT NULL,
  UNIQUE (org_id, uri)
) STRICT;

CREATE INDEX signers_by_fold ON signers (org_id, folded);

CREATE TABLE "attestations" (
  id               INTEGER PRIMARY KEY,
  previous         INTEGER NOT NULL,
  attestation_id   TEXT    NOT NULL,
  repo_id          INTEGER NOT NULL REFERENCES repos,
  commit_id        INTEGER NOT NULL REFERENCES commits,
  predicate_id     INTEGER NOT NULL REFERENCES predicates,
  type_id          INTEGER NOT NULL REFERENCES predicate_types,
  mapping_version  INTEGER NOT NULL, -- of the rules that mapped the statement
  slot             TEXT    NOT NULL, -- what it is about in addition to the commit; may be empty
  signer_id        INTEGER NOT NULL REFERENCES signers,
  key_id           INTEGER NOT NULL REFERENCES keys,
  status           TEXT    NOT NULL,
  duration_ms      INTEGER NOT NULL,
  recorded_at      INTEGER NOT NULL,
  payload_digest   BLOB    NOT NULL,
  identity_id      TEXT    NOT NULL, -- the key or root that made the signer trusted
  emails           TEXT    NOT NULL, -- of the signer, one per line
  while_promotable INTEGER NOT NULL, -- 1: recorded while the commit was PROMOTABLE or DEPLOYED
  event_id         TEXT    NOT NULL
, aged_from INTEGER NOT NULL DEFAULT 0, finished_at INTEGER NOT NULL DEFAULT 0, assertion BLOB, reason TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE "latest" (
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  slot           TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  PRIMARY KEY (commit_id, predicate_id, slot, signer_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX attestations_by_time ON attestations (repo_id, recorded_at);

CREATE INDEX attestations_by_predicate ON attestations (repo_id, predicate_id, recorded_at);

CREATE INDEX attestations_by_signer ON attestations (repo_id, signer_id, recorded_at);

CREATE UNIQUE INDEX attestations_by_commit ON attestations (commit_id, payload_digest, signer_id, key_id);

CREATE TABLE "events" (
  id       INTEGER PRIMARY KEY,
  org_id   INTEGER NOT NULL REFERENCES orgs,
  seq      INTEGER NOT NULL, -- from 0 in each org, without gaps
  event_id TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  repo_id  INTEGER REFERENCES repos,
  at       INTEGER NOT NULL,
  body     BLOB    NOT NULL, salt BLOB, leaf BLOB,
  UNIQUE (org_id, seq)
) STRICT;

CREATE INDEX events_by_time ON events (org_id, at);

CREATE INDEX sessions_by_token ON sessions (token_id, created_at);

CREATE INDEX repos_by_org ON repos (org_id);

CREATE INDEX predicates_by_org ON predicates (org_id);

CREATE INDEX commits_by_author_name ON commits (repo_id, author_name) WHERE author_name <> '';

CREATE INDEX commits_by_author_email ON commits (repo_id, author_email) WHERE author_email <> '';

CREATE INDEX tips_in_flight ON tips (repo_id, commit_id) WHERE flight = 1;

CREATE INDEX attestations_not_passed ON attestations (repo_id, status, recorded_at) WHERE status <> 'pass';

CREATE INDEX events_by_repo ON events (repo_id, seq) WHERE type <> 'radar';

CREATE INDEX events_of_radar ON events (org_id, seq) WHERE type = 'radar';

CREATE INDEX signers_by_person ON signers (org_id, person);

CREATE INDEX keys_by_person ON keys (org_id, person);

CREATE TABLE signer_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  name      TEXT    NOT NULL,
  signer_id INTEGER NOT NULL REFERENCES signers,
  PRIMARY KEY (org_id, name, signer_id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE violation_events (
  org_id  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  repo_id INTEGER NOT NULL,
  event   INTEGER NOT NULL REFERENCES events,
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE commit_objects (
  commit_id INTEGER PRIMARY KEY,
  object    BLOB NOT NULL
) STRICT;

CREATE INDEX commits_by_tree ON commits (repo_id, tree, id) WHERE tree <> '';

CREATE INDEX commits_by_tree_id ON commits (tree_id, id) WHERE tree_id > 0;

CREATE TABLE trees (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  commits INTEGER NOT NULL
) STRICT;

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

CREATE TABLE merge_sources (
  commit_id INTEGER PRIMARY KEY,
  version   INTEGER NOT NULL
) STRICT;

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

CREATE TABLE environments (
  predicate_id INTEGER NOT NULL REFERENCES predicates,
  repo_id      INTEGER NOT NULL REFERENCES repos,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  latest_id    INTEGER NOT NULL, -- the latest deployment or rollback
  PRIMARY KEY (predicate_id, repo_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX environments_by_repo ON environments (repo_id, latest_id);

CREATE INDEX environments_by_org ON environments (org_id, repo_id);

CREATE INDEX commits_failing ON commits (repo_id, id) WHERE failing_since > 0;

CREATE INDEX tips_conflicting ON tips (repo_id, commit_id) WHERE flight = 1 AND level = 3;

CREATE INDEX webhooks_troubled ON webhooks (repo_id, id) WHERE deleted_at = 0 AND (active = 0 OR failing_since > 0);

CREATE INDEX identities_expiring ON identities (org_id, not_after) WHERE revoked_at = 0 AND not_after > 0;

CREATE INDEX identities_to_log ON identities (id) WHERE event_id = '';

CREATE INDEX events_of_org ON events (org_id, seq) WHERE repo_id IS NULL;

CREATE TABLE logs (
  id         INTEGER PRIMARY KEY,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  epoch      INTEGER NOT NULL, -- from 1
  first_seq  INTEGER NOT NULL,
  origin     TEXT    NOT NULL DEFAULT '', -- fixed by the first checkpoint
  vkey       TEXT    NOT NULL DEFAULT '', -- the key of the log, as a verifier key of a signed note
  size       INTEGER NOT NULL DEFAULT 0,  -- of the newest checkpoint
  checkpoint TEXT    NOT NULL DEFAULT '', -- the newest checkpoint with its cosignatures
  signed_at  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, epoch)
) STRICT;

CREATE TABLE tiles (
  log_id INTEGER NOT NULL REFERENCES logs,
  level  INTEGER NOT NULL,
  n      INTEGER NOT NULL,
  hashes BLOB    NOT NULL,
  PRIMARY KEY (log_id, level, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipt_keys (
  log_id     INTEGER NOT NULL REFERENCES logs,
  not_after  INTEGER NOT NULL,
  key        TEXT    NOT NULL, -- hex SHA-256 of public_key
  not_before INTEGER NOT NULL,
  public_key BLOB    NOT NULL, -- DER SubjectPublicKeyInfo
  event_id   TEXT    NOT NULL, -- the event that announces it
  PRIMARY KEY (log_id, not_after, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE restores (
  org_id   INTEGER NOT NULL REFERENCES orgs,
  at       INTEGER NOT NULL,
  next_seq INTEGER NOT NULL, -- of the org in the backup
  PRIMARY KEY (org_id, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE audits (
  org_id INTEGER NOT NULL REFERENCES orgs,
  seq    INTEGER NOT NULL,
  event  INTEGER NOT NULL REFERENCES events,
  kind   TEXT    NOT NULL, -- of resource, such as token
  action TEXT    NOT NULL, -- such as token.created
  repo   TEXT    NOT NULL, -- its name at that time, in lower case; empty if it has none
  actor  TEXT    NOT NULL, -- the ID of the token, or else the name
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX repos_deleted ON repos (org_id, id) WHERE deleted_at > 0;

CREATE TABLE former_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  repo_id   INTEGER NOT NULL, -- 0: the name of the org
  until_seq INTEGER NOT NULL,
  name      TEXT    NOT NULL COLLATE NOCASE,
  PRIMARY KEY (org_id, repo_id, until_seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX former_names_by_name ON former_names (org_id, name, until_seq);

CREATE TABLE trusted_roots (
  id         INTEGER PRIMARY KEY,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  name       TEXT NOT NULL,
  version    INTEGER NOT NULL, -- from 1
  digest     TEXT NOT NULL,    -- hex SHA-256 of the document
  document   BLOB NOT NULL,    -- the JSON of a TrustedRoot
  created_at INTEGER NOT NULL,
  event_id   TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX trusted_roots_by_name ON trusted_roots (org_id, name, version);

CREATE INDEX trusted_roots_by_org ON trusted_roots (org_id, id);

CREATE TABLE issuers (
  id         INTEGER PRIMARY KEY,
  issuer_id  TEXT NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  url        TEXT NOT NULL,
  jwks       TEXT NOT NULL, -- its keys, if they were pasted; '': it is asked for them
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX issuers_by_org ON issuers (org_id, id);

CREATE UNIQUE INDEX issuers_by_url ON issuers (org_id, url) WHERE removed_at = 0;

CREATE TABLE exchange_rules (
  id         INTEGER PRIMARY KEY,
  rule_id    TEXT NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  issuer_id  INTEGER NOT NULL REFERENCES issuers,
  subject    TEXT NOT NULL, -- the ID of the repository or project on the forge
  dn         TEXT NOT NULL, -- as whom its jobs may sign; '': they may not
  rule       TEXT NOT NULL, -- JSON, without repos
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX exchange_rules_by_org ON exchange_rules (org_id, id);

CREATE INDEX exchange_rules_by_subject ON exchange_rules (issuer_id, subject, id);

CREATE TABLE exchange_rule_repos (
  rule_id INTEGER NOT NULL REFERENCES exchange_rules,
  repo_id INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (rule_id, repo_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE used_tokens (
  org_id INTEGER NOT NULL REFERENCES orgs,
  digest BLOB NOT NULL, -- SHA-256 of the issuer and of the token's jti
  until  INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest)
) STRICT, WITHOUT ROWID;

CREATE INDEX used_tokens_by_end ON used_tokens (until);

CREATE INDEX tokens_by_rule ON tokens (rule_id, expires_at) WHERE rule_id > 0;

CREATE INDEX tokens_exchanged ON tokens (expires_at) WHERE rule_id > 0;

CREATE TABLE cas (
  id          INTEGER PRIMARY KEY,
  org_id      INTEGER NOT NULL REFERENCES orgs,
  purpose     TEXT NOT NULL, -- ci
  identity_id TEXT NOT NULL, -- the root that its certificates chain to
  created_at  INTEGER NOT NULL,
  retired_at  INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX cas_by_org ON cas (org_id, id);

CREATE UNIQUE INDEX cas_in_use ON cas (org_id, purpose) WHERE retired_at = 0;

CREATE TABLE members (
  id           INTEGER PRIMARY KEY,
  member_id    TEXT NOT NULL UNIQUE,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  issuer       TEXT NOT NULL, -- the account is the issuer and the subject
  subject      TEXT NOT NULL,
  dn           TEXT NOT NULL,
  folded       TEXT NOT NULL, -- the DN, folded
  name         TEXT NOT NULL, -- what the provider calls the person; for display
  email        TEXT NOT NULL, -- verified by the provider; may be empty
  role         INTEGER NOT NULL,
  by_rule      INTEGER NOT NULL, -- 1: rules decide about role and membership; 0: an admin does
  created_at   INTEGER NOT NULL,
  signed_in_at INTEGER NOT NULL DEFAULT 0,
  removed_at   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX members_by_account ON members (org_id, issuer, subject);

CREATE INDEX members_by_subject ON members (issuer, subject);

CREATE UNIQUE INDEX members_by_dn ON members (org_id, folded);

CREATE INDEX members_by_org ON members (org_id, id);

CREATE TABLE member_rules (
  id         INTEGER PRIMARY KEY,
  rule_id    TEXT NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  issuer     TEXT NOT NULL,
  claim      TEXT NOT NULL,
  value      TEXT NOT NULL,
  role       INTEGER NOT NULL,
  dn         TEXT NOT NULL, -- a template
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX member_rules_by_org ON member_rules (org_id, id);

CREATE INDEX member_rules_by_issuer ON member_rules (issuer, org_id) WHERE removed_at = 0;

CREATE INDEX tokens_by_member ON tokens (member_id, id) WHERE member_id > 0;

CREATE INDEX tokens_of_sign_ins ON tokens (expires_at) WHERE is_sign_in = 1;

CREATE INDEX tokens_listed ON tokens (org_id, id) WHERE is_sign_in = 0;

CREATE INDEX tokens_signed_in ON tokens (org_id, id) WHERE is_sign_in = 1 AND revoked_at = 0;

CREATE INDEX tokens_expiring ON tokens (org_id, expires_at)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0 AND is_sign_in = 0;

CREATE TABLE token_repos (
  token_id INTEGER NOT NULL REFERENCES tokens,
  repo_id  INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (token_id, repo_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX token_repos_by_repo ON token_repos (repo_id);

CREATE TABLE review_drafts (
  digest   BLOB PRIMARY KEY, -- SHA-256 of the statement
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  repo_id  INTEGER NOT NULL REFERENCES repos,
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX review_drafts_by_token ON review_drafts (token_id, until);

CREATE INDEX review_drafts_by_repo ON review_drafts (repo_id);

CREATE INDEX review_drafts_by_end ON review_drafts (until);

CREATE TABLE passkeys (
  id            INTEGER PRIMARY KEY,
  passkey_id    TEXT NOT NULL UNIQUE,
  org_id        INTEGER NOT NULL REFERENCES orgs,
  member_id     INTEGER NOT NULL REFERENCES members,
  name          TEXT NOT NULL, -- what the member calls it
  rp_id         TEXT NOT NULL, -- the domain that it is for
  credential_id BLOB NOT NULL, -- how the device knows it
  public_key    BLOB NOT NULL, -- in the form of COSE
  created_at    INTEGER NOT NULL,
  removed_at    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX passkeys_by_org ON passkeys (org_id, id);

CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (member_id, credential_id);

CREATE INDEX passkeys_by_member ON passkeys (member_id, id);

CREATE TABLE passkey_challenges (
  digest   BLOB PRIMARY KEY, -- SHA-256 of the challenge
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX passkey_challenges_by_token ON passkey_challenges (token_id, until);

CREATE INDEX passkey_challenges_by_end ON passkey_challenges (until);

CREATE TABLE provider_orgs (
  issuer TEXT NOT NULL,
  org_id INTEGER NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX commits_expiring_by_repo ON commits (repo_id, expires) WHERE expires > 0;

CREATE TABLE cursor_key (
  id  INTEGER PRIMARY KEY CHECK (id = 1),
  key BLOB NOT NULL -- 32 random bytes
) STRICT;

CREATE TABLE "artifacts" (
  org_id         INTEGER NOT NULL REFERENCES orgs,
  digest         BLOB    NOT NULL, -- its length says which: 32 bytes SHA-256, 48 SHA-384, 64 SHA-512
  commit_id      INTEGER NOT NULL, -- these have no REFERENCES, which would take an index for each
  identity_id    TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL,
  is_build       INTEGER NOT NULL, -- 1 if the predicate of the attestation begins with build:
  attestation_id INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id, is_build)
) STRICT, WITHOUT ROWID;

CREATE INDEX signers_to_log ON signers (id) WHERE distinct_by = 3;

CREATE INDEX signers_distinct ON signers (org_id) WHERE distinct_by > 1;

CREATE INDEX deployments_by_commit ON deployments (commit_id) WHERE ended_id = 0;

CREATE TABLE backlog (
  repo_id    INTEGER NOT NULL REFERENCES repos,
  kind       TEXT    NOT NULL,
  ref        INTEGER NOT NULL, -- the row id of what it is about: of a commit, say; 0: of the repo as a whole
  org_id     INTEGER NOT NULL REFERENCES orgs,
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  position   INTEGER NOT NULL, -- the row id up to which it is done
  again      INTEGER NOT NULL DEFAULT 0, -- 1: it begins again at its end
  since      INTEGER NOT NULL, -- when it was asked for
  not_before INTEGER NOT NULL,
  tries      INTEGER NOT NULL DEFAULT 0, -- that have failed in a row
  error      TEXT    NOT NULL DEFAULT '', -- of the last of them
  holder     TEXT    NOT NULL DEFAULT '', -- the server that works on it
  held_until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, kind, ref)
) STRICT, WITHOUT ROWID;

CREATE INDEX backlog_by_time ON backlog (org_id, kind, not_before);

CREATE TABLE clock (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  accepted_at INTEGER NOT NULL,
  stamp       INTEGER NOT NULL
) STRICT;

INSERT INTO cursor_key (id, key) VALUES (1, randomblob(32));
