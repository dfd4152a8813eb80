-- The schema of a new database, in the dialect of PostgreSQL. Its tables are those of ../sqlite/schema.sql, which says
-- what they and their columns mean, and a test compares both. The migrations make the same tables of older databases.
--
-- Text compares by its bytes, as in SQLite. The tables with a row for each statement or event have no REFERENCES: each
-- would be a query for each row, and they are written by few functions, together with what they refer to. Indexes end
-- with the row id, as those of SQLite do by themselves.

---- store/postgres: the version, the ids and the locks of a database on a server ----

-- The one row has the version of the schema. Each write locks the rows of its orgs, and one of all orgs also this row.
-- The columns writes count the transactions of those locks, and stamp is the latest time in the ids that they made.
CREATE TABLE ledger (
  id             bigint PRIMARY KEY CHECK (id = 1),
  schema_version bigint NOT NULL,
  writes         bigint NOT NULL,
  stamp          bigint NOT NULL
);
INSERT INTO ledger (id, schema_version, writes, stamp) VALUES (1, 0, 0, 0);

CREATE EXTENSION IF NOT EXISTS citext;
-- Row ids of all tables. A value is the first of 64 ids that its transaction may use.
CREATE SEQUENCE ids INCREMENT 64;

---- store/orgs: orgs and repos ----

CREATE TABLE orgs (
  id                bigint           PRIMARY KEY DEFAULT nextval('ids'),
  name              text COLLATE "C" NOT NULL UNIQUE,
  keyring_version   bigint           NOT NULL DEFAULT 0,
  distrusts         bigint           NOT NULL DEFAULT 0,
  distrusting       bigint           NOT NULL DEFAULT 0,
  next_seq          bigint           NOT NULL DEFAULT 0,
  log_id            bigint           NOT NULL DEFAULT 0,
  log_first         bigint           NOT NULL DEFAULT 0,
  log_built         bigint           NOT NULL DEFAULT -1,
  log_public        bigint           NOT NULL DEFAULT 0,
  unlogged_settings text COLLATE "C" NOT NULL DEFAULT '',
  violations        bigint           NOT NULL DEFAULT 0,
  open_violations   bigint           NOT NULL DEFAULT 0,
  created_at        bigint           NOT NULL,
  archived_at       bigint           NOT NULL DEFAULT 0,
  deleted_at        bigint           NOT NULL DEFAULT 0,
  purged_at         bigint           NOT NULL DEFAULT 0,
  writes            bigint           NOT NULL DEFAULT 0,
  stamp             bigint           NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE repos (
  id              bigint             PRIMARY KEY DEFAULT nextval('ids'),
  org_id          bigint             NOT NULL REFERENCES orgs,
  name            citext COLLATE "C" NOT NULL,
  default_branch  text COLLATE "C"   NOT NULL,
  web_url         text COLLATE "C"   NOT NULL DEFAULT '',
  forge           text COLLATE "C"   NOT NULL DEFAULT '',
  policy_version  bigint             NOT NULL,
  policy_digest   text COLLATE "C"   NOT NULL,
  webhook_events  bigint             NOT NULL DEFAULT 0,
  keep_envelopes  bigint             NOT NULL DEFAULT 0,
  keep_events     bigint             NOT NULL DEFAULT 0,
  keep_deliveries bigint             NOT NULL DEFAULT 0,
  mapping_version bigint             NOT NULL DEFAULT 0,
  remapped_to     bigint             NOT NULL DEFAULT 0,
  attestations    bigint             NOT NULL DEFAULT 0,
  open_violations bigint             NOT NULL DEFAULT 0,
  created_at      bigint             NOT NULL,
  archived_at     bigint             NOT NULL DEFAULT 0,
  deleted_at      bigint             NOT NULL DEFAULT 0,
  purged_at       bigint             NOT NULL DEFAULT 0,
  UNIQUE (org_id, name)
);
CREATE INDEX repos_by_org ON repos (org_id, id);
CREATE INDEX repos_deleted ON repos (org_id, id) WHERE deleted_at > 0;

CREATE TABLE former_names (
  org_id    bigint             NOT NULL REFERENCES orgs,
  repo_id   bigint             NOT NULL,
  until_seq bigint             NOT NULL,
  name      citext COLLATE "C" NOT NULL,
  PRIMARY KEY (org_id, repo_id, until_seq)
);
CREATE INDEX former_names_by_name ON former_names (org_id, name, until_seq);

---- store/policies: versions of contracts ----

CREATE TABLE policies (
  repo_id    bigint           NOT NULL REFERENCES repos,
  version    bigint           NOT NULL,
  digest     text COLLATE "C" NOT NULL,
  event      bigint           NOT NULL DEFAULT 0,
  created_by text COLLATE "C" NOT NULL,
  created_at bigint           NOT NULL,
  contract   bytea            NOT NULL,
  PRIMARY KEY (repo_id, version)
);

---- store/events: what is appended ----

CREATE TABLE events (
  id       bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id   bigint           NOT NULL,
  seq      bigint           NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  type     text COLLATE "C" NOT NULL,
  repo_id  bigint,
  at       bigint           NOT NULL,
  salt     bytea,
  leaf     bytea,
  body     bytea            NOT NULL,
  UNIQUE (org_id, seq)
);
CREATE INDEX events_by_time ON events (org_id, at, id);
CREATE INDEX events_by_repo ON events (repo_id, seq, id) WHERE type <> 'radar';
CREATE INDEX events_of_radar ON events (org_id, seq, id) WHERE type = 'radar';
CREATE INDEX events_of_org ON events (org_id, seq, id) WHERE repo_id IS NULL;

CREATE TABLE audits (
  org_id bigint           NOT NULL,
  seq    bigint           NOT NULL,
  event  bigint           NOT NULL,
  kind   text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  repo   text COLLATE "C" NOT NULL,
  actor  text COLLATE "C" NOT NULL,
  PRIMARY KEY (org_id, seq)
);

CREATE TABLE violation_events (
  org_id  bigint NOT NULL,
  seq     bigint NOT NULL,
  repo_id bigint NOT NULL,
  event   bigint NOT NULL,
  PRIMARY KEY (org_id, seq)
);

CREATE TABLE restores (
  org_id   bigint NOT NULL REFERENCES orgs,
  at       bigint NOT NULL,
  next_seq bigint NOT NULL,
  PRIMARY KEY (org_id, at)
);

CREATE TABLE logs (
  id         bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id     bigint           NOT NULL REFERENCES orgs,
  epoch      bigint           NOT NULL,
  first_seq  bigint           NOT NULL,
  origin     text COLLATE "C" NOT NULL DEFAULT '',
  vkey       text COLLATE "C" NOT NULL DEFAULT '',
  size       bigint           NOT NULL DEFAULT 0,
  checkpoint text COLLATE "C" NOT NULL DEFAULT '',
  signed_at  bigint           NOT NULL DEFAULT 0,
  UNIQUE (org_id, epoch)
);

CREATE TABLE tiles (
  log_id bigint NOT NULL REFERENCES logs,
  level  bigint NOT NULL,
  n      bigint NOT NULL,
  hashes bytea  NOT NULL,
  PRIMARY KEY (log_id, level, n)
);

CREATE TABLE receipt_keys (
  log_id     bigint           NOT NULL REFERENCES logs,
  not_after  bigint           NOT NULL,
  key        text COLLATE "C" NOT NULL,
  not_before bigint           NOT NULL,
  public_key bytea            NOT NULL,
  event_id   text COLLATE "C" NOT NULL,
  PRIMARY KEY (log_id, not_after, key)
);

---- store/signers: who signs, and what statements are called ----

CREATE TABLE identities (
  id               bigint           PRIMARY KEY DEFAULT nextval('ids'),
  identity_id      text COLLATE "C" NOT NULL UNIQUE,
  org_id           bigint           NOT NULL REFERENCES orgs,
  kind             text COLLATE "C" NOT NULL,
  dn               text COLLATE "C" NOT NULL,
  email            text COLLATE "C" NOT NULL,
  emails           text COLLATE "C" NOT NULL DEFAULT '',
  logins           text COLLATE "C" NOT NULL DEFAULT '',
  fingerprint      text COLLATE "C" NOT NULL,
  pem              text COLLATE "C" NOT NULL,
  sigstore         text COLLATE "C" NOT NULL DEFAULT '',
  may              text COLLATE "C" NOT NULL DEFAULT '',
  dn_pattern       text COLLATE "C" NOT NULL DEFAULT '',
  event_id         text COLLATE "C" NOT NULL DEFAULT '',
  not_after        bigint           NOT NULL,
  created_at       bigint           NOT NULL,
  revoked_at       bigint           NOT NULL DEFAULT 0,
  distrusted_since bigint           NOT NULL DEFAULT 0
);
CREATE INDEX identities_by_org ON identities (org_id, id);
CREATE UNIQUE INDEX identities_active ON identities (org_id, kind, fingerprint) WHERE revoked_at = 0;
CREATE INDEX identities_expiring ON identities (org_id, not_after, id) WHERE revoked_at = 0 AND not_after > 0;
CREATE INDEX identities_to_log ON identities (id) WHERE event_id = '';

CREATE TABLE cas (
  id          bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id      bigint           NOT NULL REFERENCES orgs,
  purpose     text COLLATE "C" NOT NULL,
  identity_id text COLLATE "C" NOT NULL,
  created_at  bigint           NOT NULL,
  retired_at  bigint           NOT NULL DEFAULT 0
);
CREATE INDEX cas_by_org ON cas (org_id, id);
CREATE UNIQUE INDEX cas_in_use ON cas (org_id, purpose) WHERE retired_at = 0;

CREATE TABLE trusted_roots (
  id         bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id     bigint           NOT NULL REFERENCES orgs,
  name       text COLLATE "C" NOT NULL,
  version    bigint           NOT NULL,
  digest     text COLLATE "C" NOT NULL,
  document   bytea            NOT NULL,
  event_id   text COLLATE "C" NOT NULL DEFAULT '',
  created_at bigint           NOT NULL
);
CREATE UNIQUE INDEX trusted_roots_by_name ON trusted_roots (org_id, name, version);
CREATE INDEX trusted_roots_by_org ON trusted_roots (org_id, id);

CREATE TABLE signers (
  id          bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id      bigint           NOT NULL REFERENCES orgs,
  dn          text COLLATE "C" NOT NULL,
  cn          text COLLATE "C" NOT NULL,
  folded      text COLLATE "C" NOT NULL DEFAULT '',
  person      bigint           NOT NULL DEFAULT 0,
  individual  bigint           NOT NULL DEFAULT 0,
  distinct_by bigint           NOT NULL DEFAULT 0,
  UNIQUE (org_id, dn)
);
CREATE INDEX signers_by_cn ON signers (org_id, cn, id);
CREATE INDEX signers_by_fold ON signers (org_id, folded, id);
CREATE INDEX signers_by_person ON signers (org_id, person, id);
CREATE INDEX signers_to_log ON signers (id) WHERE distinct_by = 3;
CREATE INDEX signers_distinct ON signers (org_id) WHERE distinct_by > 1;

CREATE TABLE signer_names (
  org_id    bigint           NOT NULL REFERENCES orgs,
  name      text COLLATE "C" NOT NULL,
  signer_id bigint           NOT NULL REFERENCES signers,
  PRIMARY KEY (org_id, name, signer_id)
);

CREATE TABLE keys (
  id      bigint PRIMARY KEY DEFAULT nextval('ids'),
  org_id  bigint NOT NULL REFERENCES orgs,
  digest  bytea  NOT NULL,
  person  bigint NOT NULL DEFAULT 0,
  claimed bigint NOT NULL DEFAULT 0,
  UNIQUE (org_id, digest)
);
CREATE INDEX keys_by_person ON keys (org_id, person, id);

CREATE TABLE predicates (
  id           bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id       bigint           NOT NULL REFERENCES orgs,
  name         text COLLATE "C" NOT NULL,
  attestations bigint           NOT NULL DEFAULT 0,
  last_at      bigint           NOT NULL DEFAULT 0,
  UNIQUE (org_id, name)
);
CREATE INDEX predicates_by_org ON predicates (org_id, id);

CREATE TABLE predicate_types (
  id     bigint           PRIMARY KEY DEFAULT nextval('ids'),
  org_id bigint           NOT NULL REFERENCES orgs,
  uri    text COLLATE "C" NOT NULL,
  UNIQUE (org_id, uri)
);

---- store/access: who may use an org ----

CREATE TABLE tokens (
  id           bigint           PRIMARY KEY DEFAULT nextval('ids'),
  token_id     text COLLATE "C" NOT NULL UNIQUE,
  org_id       bigint           NOT NULL REFERENCES orgs,
  name         text COLLATE "C" NOT NULL,
  hash         bytea            NOT NULL UNIQUE,
  permission   bigint           NOT NULL,
  is_limited   bigint           NOT NULL DEFAULT 0,
  is_sign_in   bigint           NOT NULL DEFAULT 0,
  member_id    bigint           NOT NULL DEFAULT 0,
  rule_id      bigint           NOT NULL DEFAULT 0,
  created_by   text COLLATE "C" NOT NULL DEFAULT '',
  auth_time    bigint           NOT NULL DEFAULT 0,
  client       text COLLATE "C" NOT NULL DEFAULT '',
  client_at    bigint           NOT NULL DEFAULT 0,
  created_at   bigint           NOT NULL,
  expires_at   bigint           NOT NULL,
  last_used_at bigint           NOT NULL DEFAULT 0,
  revoked_at   bigint           NOT NULL DEFAULT 0
);
CREATE INDEX tokens_by_org ON tokens (org_id, id);
CREATE INDEX tokens_by_rule ON tokens (rule_id, expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_exchanged ON tokens (expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_by_member ON tokens (member_id, id) WHERE member_id > 0;
CREATE INDEX tokens_of_sign_ins ON tokens (expires_at) WHERE is_sign_in = 1;
CREATE INDEX tokens_listed ON tokens (org_id, id) WHERE is_sign_in = 0;
CREATE INDEX tokens_signed_in ON tokens (org_id, id) WHERE is_sign_in = 1 AND revoked_at = 0;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at, id)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0 AND is_sign_in = 0;

CREATE TABLE token_repos (
  token_id bigint NOT NULL REFERENCES tokens,
  repo_id  bigint NOT NULL REFERENCES repos,
  PRIMARY KEY (token_id, repo_id)
);
CREATE INDEX token_repos_by_repo ON token_repos (repo_id);

CREATE TABLE sessions (
  hash       bytea  PRIMARY KEY,
  token_id   bigint NOT NULL REFERENCES tokens,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_token ON sessions (token_id, created_at);

CREATE TABLE issuers (
  id         bigint           PRIMARY KEY DEFAULT nextval('ids'),
  issuer_id  text COLLATE "C" NOT NULL UNIQUE,
  org_id     bigint           NOT NULL REFERENCES orgs,
  url        text COLLATE "C" NOT NULL,
  jwks       text COLLATE "C" NOT NULL,
  created_at bigint           NOT NULL,
  removed_at bigint           NOT NULL DEFAULT 0
);
CREATE INDEX issuers_by_org ON issuers (org_id, id);
CREATE UNIQUE INDEX issuers_by_url ON issuers (org_id, url) WHERE removed_at = 0;

CREATE TABLE exchange_rules (
  id         bigint           PRIMARY KEY DEFAULT nextval('ids'),
  rule_id    text COLLATE "C" NOT NULL UNIQUE,
  org_id     bigint           NOT NULL REFERENCES orgs,
  issuer_id  bigint           NOT NULL REFERENCES issuers,
  subject    text COLLATE "C" NOT NULL,
  dn         text COLLATE "C" NOT NULL,
  rule       text COLLATE "C" NOT NULL,
  created_at bigint           NOT NULL,
  removed_at bigint           NOT NULL DEFAULT 0
);
CREATE INDEX exchange_rules_by_org ON exchange_rules (org_id, id);
CREATE INDEX exchange_rules_by_subject ON exchange_rules (issuer_id, subject, id);

CREATE TABLE exchange_rule_repos (
  rule_id bigint NOT NULL REFERENCES exchange_rules,
  repo_id bigint NOT NULL REFERENCES repos,
  PRIMARY KEY (rule_id, repo_id)
);

CREATE TABLE used_tokens (
  org_id bigint NOT NULL REFERENCES orgs,
  digest bytea  NOT NULL,
  until  bigint NOT NULL,
  PRIMARY KEY (org_id, digest)
);
CREATE INDEX used_tokens_by_end ON used_tokens (until);

CREATE TABLE members (
  id           bigint           PRIMARY KEY DEFAULT nextval('ids'),
  member_id    text COLLATE "C" NOT NULL UNIQUE,
  org_id       bigint           NOT NULL REFERENCES orgs,
  issuer       text COLLATE "C" NOT NULL,
  subject      text COLLATE "C" NOT NULL,
  dn           text COLLATE "C" NOT NULL,
  folded       text COLLATE "C" NOT NULL,
  name         text COLLATE "C" NOT NULL,
  email        text COLLATE "C" NOT NULL,
  role         bigint           NOT NULL,
  by_rule      bigint           NOT NULL,
  created_at   bigint           NOT NULL,
  signed_in_at bigint           NOT NULL DEFAULT 0,
  removed_at   bigint           NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX members_by_account ON members (org_id, issuer, subject);
CREATE INDEX members_by_subject ON members (issuer, subject);
CREATE UNIQUE INDEX members_by_dn ON members (org_id, folded);
CREATE INDEX members_by_org ON members (org_id, id);

CREATE TABLE member_rules (
  id         bigint           PRIMARY KEY DEFAULT nextval('ids'),
  rule_id    text COLLATE "C" NOT NULL UNIQUE,
  org_id     bigint           NOT NULL REFERENCES orgs,
  issuer     text COLLATE "C" NOT NULL,
  claim      text COLLATE "C" NOT NULL,
  value      text COLLATE "C" NOT NULL,
  role       bigint           NOT NULL,
  dn         text COLLATE "C" NOT NULL,
  created_at bigint           NOT NULL,
  removed_at bigint           NOT NULL DEFAULT 0
);
CREATE INDEX member_rules_by_org ON member_rules (org_id, id);
CREATE INDEX member_rules_by_issuer ON member_rules (issuer, org_id) WHERE removed_at = 0;

CREATE TABLE passkeys (
  id            bigint           PRIMARY KEY DEFAULT nextval('ids'),
  passkey_id    text COLLATE "C" NOT NULL UNIQUE,
  org_id        bigint           NOT NULL REFERENCES orgs,
  member_id     bigint           NOT NULL REFERENCES members,
  name          text COLLATE "C" NOT NULL,
  rp_id         text COLLATE "C" NOT NULL,
  credential_id bytea            NOT NULL,
  public_key    bytea            NOT NULL,
  created_at    bigint           NOT NULL,
  removed_at    bigint           NOT NULL DEFAULT 0
);
CREATE INDEX passkeys_by_org ON passkeys (org_id, id);
CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (member_id, credential_id);
CREATE INDEX passkeys_by_member ON passkeys (member_id, id);

CREATE TABLE passkey_challenges (
  digest   bytea  PRIMARY KEY,
  token_id bigint NOT NULL REFERENCES tokens,
  until    bigint NOT NULL
);
CREATE INDEX passkey_challenges_by_token ON passkey_challenges (token_id, until);
CREATE INDEX passkey_challenges_by_end ON passkey_challenges (until);

CREATE TABLE review_drafts (
  digest   bytea  PRIMARY KEY,
  token_id bigint NOT NULL REFERENCES tokens,
  repo_id  bigint NOT NULL REFERENCES repos,
  until    bigint NOT NULL
);
CREATE INDEX review_drafts_by_token ON review_drafts (token_id, until);
CREATE INDEX review_drafts_by_repo ON review_drafts (repo_id);
CREATE INDEX review_drafts_by_end ON review_drafts (until);

CREATE TABLE provider_orgs (
  issuer text COLLATE "C" NOT NULL,
  org_id bigint           NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
);

---- store/webhooks: what others receive ----

CREATE TABLE webhooks (
  id              bigint           PRIMARY KEY DEFAULT nextval('ids'),
  webhook_id      text COLLATE "C" NOT NULL UNIQUE,
  repo_id         bigint           NOT NULL REFERENCES repos,
  url             text COLLATE "C" NOT NULL,
  events          bigint           NOT NULL,
  description     text COLLATE "C" NOT NULL,
  secret          text COLLATE "C" NOT NULL,
  previous_secret text COLLATE "C" NOT NULL DEFAULT '',
  previous_until  bigint           NOT NULL DEFAULT 0,
  auth_header     text COLLATE "C" NOT NULL DEFAULT '',
  active          bigint           NOT NULL,
  disabled_at     bigint           NOT NULL DEFAULT 0,
  disabled_reason text COLLATE "C" NOT NULL DEFAULT '',
  failing_since   bigint           NOT NULL DEFAULT 0,
  failures        bigint           NOT NULL DEFAULT 0,
  created_at      bigint           NOT NULL,
  changed_at      bigint           NOT NULL,
  deleted_at      bigint           NOT NULL DEFAULT 0
);
CREATE INDEX webhooks_by_repo ON webhooks (repo_id, id) WHERE deleted_at = 0;
CREATE INDEX webhooks_active ON webhooks (id) WHERE active = 1;
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at > 0;
CREATE INDEX webhooks_troubled ON webhooks (repo_id, id) WHERE deleted_at = 0 AND (active = 0 OR failing_since > 0);

CREATE TABLE outbox (
  webhook_id  bigint           NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  event       bigint,
  ping        text COLLATE "C",
  status      text COLLATE "C" NOT NULL,
  due_at      bigint           NOT NULL,
  leased      bigint           NOT NULL DEFAULT 0,
  attempts    bigint           NOT NULL DEFAULT 0,
  tries       bigint           NOT NULL DEFAULT 0,
  created_at  bigint           NOT NULL,
  ended_at    bigint           NOT NULL DEFAULT 0,
  PRIMARY KEY (webhook_id, delivery_id)
);
CREATE UNIQUE INDEX outbox_by_event ON outbox (webhook_id, event);
CREATE INDEX outbox_due ON outbox (webhook_id, due_at) WHERE due_at > 0;
CREATE INDEX outbox_ended ON outbox (webhook_id, ended_at) WHERE ended_at > 0;
CREATE INDEX outbox_failed ON outbox (webhook_id, delivery_id) WHERE status = 'failed';

CREATE TABLE attempts (
  webhook_id  bigint           NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  number      bigint           NOT NULL,
  at          bigint           NOT NULL,
  duration_ms bigint           NOT NULL,
  status      bigint           NOT NULL,
  error       text COLLATE "C" NOT NULL,
  request     bytea            NOT NULL,
  response    bytea            NOT NULL,
  PRIMARY KEY (webhook_id, delivery_id, number)
);

---- store/history: what commit objects say of the history ----

CREATE TABLE ancestors (
  repo_id     bigint           NOT NULL,
  sha         text COLLATE "C" NOT NULL,
  signing_key text COLLATE "C" NOT NULL,
  object      bytea            NOT NULL,
  PRIMARY KEY (repo_id, sha)
);

---- store/facts: what is known of commits ----

CREATE TABLE commits (
  id             bigint           PRIMARY KEY DEFAULT nextval('ids'),
  repo_id        bigint           NOT NULL,
  sha            text COLLATE "C" NOT NULL,
  branch         text COLLATE "C" NOT NULL DEFAULT '',
  target         text COLLATE "C" NOT NULL DEFAULT '',
  targets        text COLLATE "C" NOT NULL DEFAULT '',
  base           text COLLATE "C" NOT NULL DEFAULT '',
  author_name    text COLLATE "C" NOT NULL DEFAULT '',
  author_email   text COLLATE "C" NOT NULL DEFAULT '',
  writers        text COLLATE "C" NOT NULL DEFAULT '',
  signing_keys   text COLLATE "C" NOT NULL DEFAULT '',
  committed_at   bigint           NOT NULL DEFAULT 0,
  tree           text COLLATE "C" NOT NULL DEFAULT '',
  tree_id        bigint           NOT NULL DEFAULT 0,
  merged         bigint           NOT NULL DEFAULT 0,
  gap            bigint           NOT NULL DEFAULT 0,
  attestations   bigint           NOT NULL DEFAULT 0,
  newest         bigint           NOT NULL DEFAULT 0,
  state          bigint           NOT NULL,
  state_since    bigint           NOT NULL,
  standing       bigint           NOT NULL DEFAULT 4,
  failing_since  bigint           NOT NULL DEFAULT 0,
  expires        bigint           NOT NULL DEFAULT 0,
  policy_version bigint           NOT NULL,
  basis          bigint           NOT NULL DEFAULT 0,
  distrusts      bigint           NOT NULL DEFAULT 0,
  facts          bytea            NOT NULL DEFAULT '',
  registered_at  bigint           NOT NULL,
  message        text COLLATE "C" NOT NULL DEFAULT '',
  UNIQUE (repo_id, sha)
);
CREATE INDEX commits_by_repo ON commits (repo_id, id);
CREATE INDEX commits_by_state ON commits (repo_id, state, id);
CREATE INDEX commits_by_branch ON commits (repo_id, branch, id) WHERE branch <> '';
CREATE INDEX commits_by_author_name ON commits (repo_id, author_name, id) WHERE author_name <> '';
CREATE INDEX commits_by_author_email ON commits (repo_id, author_email, id) WHERE author_email <> '';
CREATE INDEX commits_by_tree ON commits (repo_id, tree, id) WHERE tree <> '';
CREATE INDEX commits_by_tree_id ON commits (tree_id, id) WHERE tree_id > 0;
CREATE INDEX commits_failing ON commits (repo_id, id) WHERE failing_since > 0;
CREATE INDEX commits_expiring_by_repo ON commits (repo_id, expires) WHERE expires > 0;
CREATE INDEX commits_with_gap ON commits (repo_id, id) WHERE gap = 1;

CREATE TABLE commit_details (
  commit_id bigint           PRIMARY KEY REFERENCES commits,
  parents   bytea            NOT NULL,
  ancestors bytea            NOT NULL,
  contained bytea            NOT NULL,
  changes   bytea,
  paths     bytea,
  paths_key text COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE corrections (
  id        bigint           PRIMARY KEY DEFAULT nextval('ids'),
  commit_id bigint           NOT NULL REFERENCES commits,
  at        bigint           NOT NULL,
  by        text COLLATE "C" NOT NULL,
  field     text COLLATE "C" NOT NULL,
  before    text COLLATE "C" NOT NULL,
  after     text COLLATE "C" NOT NULL
);
CREATE INDEX corrections_by_commit ON corrections (commit_id, id);

CREATE TABLE repo_states (
  repo_id bigint NOT NULL REFERENCES repos,
  state   bigint NOT NULL,
  commits bigint NOT NULL,
  PRIMARY KEY (repo_id, state)
);

CREATE TABLE attestations (
  id               bigint           PRIMARY KEY DEFAULT nextval('ids'),
  attestation_id   text COLLATE "C" NOT NULL,
  repo_id          bigint           NOT NULL,
  commit_id        bigint           NOT NULL,
  previous         bigint           NOT NULL,
  predicate_id     bigint           NOT NULL,
  type_id          bigint           NOT NULL,
  slot             text COLLATE "C" NOT NULL,
  status           text COLLATE "C" NOT NULL,
  base             text COLLATE "C" NOT NULL DEFAULT '',
  reason           text COLLATE "C" NOT NULL DEFAULT '',
  mapping_version  bigint           NOT NULL,
  signer_id        bigint           NOT NULL,
  key_id           bigint           NOT NULL,
  identity_id      text COLLATE "C" NOT NULL,
  emails           text COLLATE "C" NOT NULL,
  payload_digest   bytea            NOT NULL,
  assertion        bytea,
  while_promotable bigint           NOT NULL,
  event_id         text COLLATE "C" NOT NULL,
  duration_ms      bigint           NOT NULL,
  finished_at      bigint           NOT NULL DEFAULT 0,
  recorded_at      bigint           NOT NULL,
  aged_from        bigint           NOT NULL DEFAULT 0
);
CREATE INDEX attestations_by_time ON attestations (repo_id, recorded_at, id);
CREATE INDEX attestations_by_predicate ON attestations (repo_id, predicate_id, recorded_at, id);
CREATE INDEX attestations_by_signer ON attestations (repo_id, signer_id, recorded_at, id);
CREATE UNIQUE INDEX attestations_by_commit ON attestations (commit_id, payload_digest, signer_id, key_id);
CREATE INDEX attestations_not_passed ON attestations (repo_id, status, recorded_at, id) WHERE status <> 'pass';

CREATE TABLE envelopes (
  attestation_id bigint PRIMARY KEY,
  payload_at     bigint,
  body           bytea  NOT NULL,
  payload        bytea,
  assertion      bytea
);

CREATE TABLE latest (
  commit_id      bigint           NOT NULL,
  predicate_id   bigint           NOT NULL,
  slot           text COLLATE "C" NOT NULL,
  signer_id      bigint           NOT NULL,
  attestation_id bigint           NOT NULL,
  PRIMARY KEY (commit_id, predicate_id, slot, signer_id)
);

CREATE TABLE artifacts (
  org_id         bigint           NOT NULL REFERENCES orgs,
  digest         bytea            NOT NULL,
  commit_id      bigint           NOT NULL,
  identity_id    text COLLATE "C" NOT NULL,
  signer_id      bigint           NOT NULL,
  is_build       bigint           NOT NULL,
  attestation_id bigint           NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id, is_build)
);

CREATE TABLE expressions (
  id   bigint           PRIMARY KEY DEFAULT nextval('ids'),
  text text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE verdicts (
  attestation_id bigint           NOT NULL,
  expression_id  bigint           NOT NULL,
  verdict        bigint           NOT NULL,
  error          text COLLATE "C" NOT NULL,
  PRIMARY KEY (attestation_id, expression_id)
);

CREATE TABLE exceptions (
  attestation_id bigint           PRIMARY KEY,
  repo_id        bigint           NOT NULL,
  commit_id      bigint           NOT NULL,
  requirement    text COLLATE "C" NOT NULL,
  reason         text COLLATE "C" NOT NULL,
  ends_at        bigint           NOT NULL
);
CREATE INDEX exceptions_by_commit ON exceptions (commit_id, attestation_id);
CREATE INDEX exceptions_by_repo ON exceptions (repo_id, attestation_id);
CREATE INDEX exceptions_by_end ON exceptions (repo_id, ends_at, attestation_id);

CREATE TABLE change_records (
  attestation_id bigint PRIMARY KEY,
  paths          bytea  NOT NULL
);

CREATE TABLE trees (
  id      bigint PRIMARY KEY DEFAULT nextval('ids'),
  version bigint NOT NULL,
  commits bigint NOT NULL
);

CREATE TABLE tree_latest (
  tree_id        bigint           NOT NULL,
  predicate_id   bigint           NOT NULL,
  slot           text COLLATE "C" NOT NULL,
  signer_id      bigint           NOT NULL,
  stated         bigint           NOT NULL,
  attestation_id bigint           NOT NULL,
  commit_id      bigint           NOT NULL,
  failed         bigint           NOT NULL,
  PRIMARY KEY (tree_id, predicate_id, slot, signer_id, stated)
);
CREATE INDEX tree_latest_failed ON tree_latest (tree_id) WHERE failed = 1;

CREATE TABLE merge_sides (
  commit_id bigint           PRIMARY KEY,
  version   bigint           NOT NULL,
  met       text COLLATE "C" NOT NULL DEFAULT ''
);

---- store/overlaps: the radar ----

CREATE TABLE tips (
  commit_id      bigint           PRIMARY KEY,
  repo_id        bigint           NOT NULL,
  sha            text COLLATE "C" NOT NULL,
  branch         text COLLATE "C" NOT NULL,
  flight         bigint           NOT NULL,
  place          bigint           NOT NULL,
  seq            bigint           NOT NULL,
  lineage        text COLLATE "C" NOT NULL,
  policy_version bigint           NOT NULL,
  level          bigint           NOT NULL DEFAULT 0,
  truncated      bigint           NOT NULL DEFAULT 0,
  opened_at      bigint           NOT NULL,
  ended_at       bigint           NOT NULL DEFAULT 0
);
CREATE INDEX tips_by_branch ON tips (repo_id, branch, commit_id) WHERE flight < 4;
CREATE INDEX tips_by_seq ON tips (repo_id, seq, commit_id);
CREATE INDEX tips_by_place ON tips (repo_id, place, commit_id) WHERE flight = 1;
CREATE INDEX tips_by_age ON tips (repo_id, opened_at, commit_id) WHERE flight < 4;
CREATE INDEX tips_done ON tips (repo_id, commit_id) WHERE flight IN (4, 5);
CREATE INDEX tips_unseen ON tips (repo_id, opened_at, commit_id) WHERE policy_version = 0 AND flight = 1;
CREATE INDEX tips_in_flight ON tips (repo_id, commit_id) WHERE flight = 1;
CREATE INDEX tips_conflicting ON tips (repo_id, commit_id) WHERE flight = 1 AND level = 3;

CREATE TABLE "overlaps" (
  later     bigint           NOT NULL,
  earlier   bigint           NOT NULL,
  level     bigint           NOT NULL,
  announced bigint           NOT NULL,
  since     bigint           NOT NULL,
  path      text COLLATE "C" NOT NULL,
  reason    text COLLATE "C" NOT NULL,
  PRIMARY KEY (later, earlier)
);

---- store/states: the state machine ----

CREATE TABLE transitions (
  commit_id  bigint           NOT NULL,
  event      bigint           NOT NULL,
  from_state bigint           NOT NULL,
  to_state   bigint           NOT NULL,
  at         bigint           NOT NULL,
  cause_type text COLLATE "C" NOT NULL,
  cause_id   text COLLATE "C" NOT NULL,
  PRIMARY KEY (commit_id, event)
);

CREATE TABLE violations (
  id             bigint           PRIMARY KEY DEFAULT nextval('ids'),
  repo_id        bigint           NOT NULL,
  org_id         bigint           NOT NULL,
  commit_id      bigint           NOT NULL,
  predicate_id   bigint           NOT NULL,
  attestation_id bigint           NOT NULL,
  state          bigint           NOT NULL,
  opened_at      bigint           NOT NULL,
  missing        text COLLATE "C" NOT NULL,
  closed_at      bigint           NOT NULL DEFAULT 0,
  closed_how     text COLLATE "C" NOT NULL DEFAULT '',
  closed_by      text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE INDEX violations_by_commit ON violations (commit_id, id);
CREATE INDEX violations_by_repo ON violations (repo_id, id);
CREATE INDEX violations_by_org ON violations (org_id, id);
CREATE INDEX violations_open ON violations (repo_id, predicate_id, id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_commit ON violations (commit_id, predicate_id, id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_repo ON violations (repo_id, id) WHERE closed_at = 0;
CREATE INDEX violations_open_by_org ON violations (org_id, id) WHERE closed_at = 0;

---- store/record: proofs, merges and deployments ----

CREATE TABLE commit_objects (
  commit_id bigint PRIMARY KEY,
  object    bytea  NOT NULL
);

CREATE TABLE merges (
  attestation_id bigint           PRIMARY KEY REFERENCES attestations,
  commit_id      bigint           NOT NULL,
  source_id      bigint           NOT NULL,
  parent_id      bigint           NOT NULL DEFAULT 0,
  kind           text COLLATE "C" NOT NULL,
  parent_state   bigint           NOT NULL,
  reason         text COLLATE "C" NOT NULL
);
CREATE INDEX merges_by_commit ON merges (commit_id, attestation_id);
CREATE INDEX merges_by_source ON merges (source_id, commit_id);
CREATE INDEX merges_by_parent ON merges (parent_id, commit_id) WHERE parent_id > 0;

CREATE TABLE deployments (
  repo_id        bigint NOT NULL REFERENCES repos,
  predicate_id   bigint NOT NULL REFERENCES predicates,
  commit_id      bigint NOT NULL,
  attestation_id bigint NOT NULL,
  required       bigint NOT NULL,
  ended_id       bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, predicate_id, commit_id)
);
CREATE INDEX deployments_present ON deployments (repo_id, predicate_id, attestation_id) WHERE ended_id = 0;
CREATE INDEX deployments_ended ON deployments (repo_id, predicate_id, ended_id) WHERE ended_id > 0;
CREATE INDEX deployments_by_commit ON deployments (commit_id) WHERE ended_id = 0;

CREATE TABLE environments (
  predicate_id bigint NOT NULL REFERENCES predicates,
  repo_id      bigint NOT NULL REFERENCES repos,
  org_id       bigint NOT NULL REFERENCES orgs,
  latest_id    bigint NOT NULL,
  PRIMARY KEY (predicate_id, repo_id)
);
CREATE INDEX environments_by_repo ON environments (repo_id, latest_id);
CREATE INDEX environments_by_org ON environments (org_id, repo_id);

---- store/backlog: what is done later ----

CREATE TABLE backlog (
  repo_id    bigint           NOT NULL REFERENCES repos,
  kind       text COLLATE "C" NOT NULL,
  ref        bigint           NOT NULL,
  org_id     bigint           NOT NULL REFERENCES orgs,
  cause_type text COLLATE "C" NOT NULL,
  cause_id   text COLLATE "C" NOT NULL,
  position   bigint           NOT NULL,
  again      bigint           NOT NULL DEFAULT 0,
  since      bigint           NOT NULL,
  not_before bigint           NOT NULL,
  tries      bigint           NOT NULL DEFAULT 0,
  error      text COLLATE "C" NOT NULL DEFAULT '',
  holder     text COLLATE "C" NOT NULL DEFAULT '',
  held_until bigint           NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, kind, ref)
);
CREATE INDEX backlog_by_time ON backlog (org_id, kind, not_before);

---- store/upkeep: the clock, and the key of the cursors of lists ----

-- The names of its constraints are those that the migrations make.
CREATE TABLE clock (
  id          bigint CONSTRAINT clock_pkey1 PRIMARY KEY CONSTRAINT clock_id_check1 CHECK (id = 1),
  accepted_at bigint NOT NULL,
  stamp       bigint NOT NULL
);

CREATE TABLE cursor_key (
  id  bigint PRIMARY KEY CHECK (id = 1),
  key bytea  NOT NULL
);
-- A random UUID has 122 random bits.
INSERT INTO cursor_key (id, key)
VALUES (1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));
