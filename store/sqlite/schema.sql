-- The schema of a new database. The migrations make the same tables, with their columns in another order, of databases
-- of earlier releases; a test compares both. The tables are below the packages that write them.
--
-- Times are Unix milliseconds, and 0 is no time. Flags are 0 or 1. The numbers of states, scopes, roles and levels are
-- those of the constants in package ledger and below it. Columns named id are row ids, which the API does not show: its
-- ids are in columns such as token_id. Where a comment does not say otherwise, 0 and '' stand for none.

PRAGMA application_id = 0x6c646764; -- "ldgd"

---- store/orgs: orgs and repos ----

-- A row is an org, with the versions and counts that other rooms keep of it.
CREATE TABLE orgs (
  id                INTEGER PRIMARY KEY,
  name              TEXT    NOT NULL UNIQUE,       -- ~ and the row id, once it is deleted
  keyring_version   INTEGER NOT NULL DEFAULT 0,    -- incremented when an identity is added or revoked
  distrusts         INTEGER NOT NULL DEFAULT 0,    -- how often evidence was distrusted
  distrusting       INTEGER NOT NULL DEFAULT 0,    -- 1: the table latest may still have distrusted evidence
  next_seq          INTEGER NOT NULL DEFAULT 0,    -- the seq of the next event
  log_id            INTEGER NOT NULL DEFAULT 0,    -- the present log
  log_first         INTEGER NOT NULL DEFAULT 0,    -- the seq of its first event
  log_built         INTEGER NOT NULL DEFAULT -1,   -- how many leaves are done while it is being built; -1: it is built
  log_public        INTEGER NOT NULL DEFAULT 0,
  unlogged_settings TEXT    NOT NULL DEFAULT '',   -- kind:id of the last resource whose settings were logged
  violations        INTEGER NOT NULL DEFAULT 0,    -- the number of all
  open_violations   INTEGER NOT NULL DEFAULT 0,
  created_at        INTEGER NOT NULL,
  archived_at       INTEGER NOT NULL DEFAULT 0,
  deleted_at        INTEGER NOT NULL DEFAULT 0,
  purged_at         INTEGER NOT NULL DEFAULT 0     -- when all that can be pruned was pruned, after it was deleted
) STRICT;

-- A row is a repo, with its settings and the counts that other rooms keep of it.
CREATE TABLE repos (
  id              INTEGER PRIMARY KEY,
  org_id          INTEGER NOT NULL REFERENCES orgs,
  name            TEXT    NOT NULL COLLATE NOCASE, -- ~ and the row id, once it is deleted
  default_branch  TEXT    NOT NULL,
  web_url         TEXT    NOT NULL DEFAULT '',     -- where people see it, such as https://github.com/acme/api
  forge           TEXT    NOT NULL DEFAULT '',     -- the kind of forge, which says how links to it are formed
  policy_version  INTEGER NOT NULL,
  policy_digest   TEXT    NOT NULL,
  webhook_events  INTEGER NOT NULL DEFAULT 0,      -- those that an active webhook receives, as webhooks.events
  keep_envelopes  INTEGER NOT NULL DEFAULT 0,      -- how long they are kept, in milliseconds; 0: without a limit
  keep_events     INTEGER NOT NULL DEFAULT 0,      -- the same of the bodies of events
  keep_deliveries INTEGER NOT NULL DEFAULT 0,      -- the same; 0: as the server is configured
  mapping_version INTEGER NOT NULL DEFAULT 0,      -- of the rules by which statements are, or are being, mapped
  remapped_to     INTEGER NOT NULL DEFAULT 0,      -- the last attestation that was mapped by earlier rules
  attestations    INTEGER NOT NULL DEFAULT 0,      -- the number of all
  open_violations INTEGER NOT NULL DEFAULT 0,
  created_at      INTEGER NOT NULL,
  archived_at     INTEGER NOT NULL DEFAULT 0,
  deleted_at      INTEGER NOT NULL DEFAULT 0,
  purged_at       INTEGER NOT NULL DEFAULT 0,      -- as that of an org
  UNIQUE (org_id, name)
) STRICT;
CREATE INDEX repos_by_org ON repos (org_id);
CREATE INDEX repos_deleted ON repos (org_id, id) WHERE deleted_at > 0;

-- A row is a name that an org or a repo had: that of its events before until_seq, down to those of the row before.
CREATE TABLE former_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  repo_id   INTEGER NOT NULL, -- 0: the name of the org
  until_seq INTEGER NOT NULL,
  name      TEXT    NOT NULL COLLATE NOCASE,
  PRIMARY KEY (org_id, repo_id, until_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_names_by_name ON former_names (org_id, name, until_seq);

---- store/policies: versions of contracts ----

-- A row is a version of the contract of a repo.
CREATE TABLE policies (
  repo_id    INTEGER NOT NULL REFERENCES repos,
  version    INTEGER NOT NULL,
  digest     TEXT    NOT NULL,
  event      INTEGER NOT NULL DEFAULT 0, -- that announces it; 0: the first version, or one from before an upgrade
  created_by TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  contract   BLOB    NOT NULL,           -- canonical JSON
  PRIMARY KEY (repo_id, version)
) STRICT, WITHOUT ROWID;

---- store/events: what is appended ----

-- A row is an event of an org; its body is rendered once.
CREATE TABLE events (
  id       INTEGER PRIMARY KEY,
  org_id   INTEGER NOT NULL REFERENCES orgs,
  seq      INTEGER NOT NULL,         -- from 0 in each org, without gaps
  event_id TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  repo_id  INTEGER REFERENCES repos, -- NULL: it is about the org
  at       INTEGER NOT NULL,
  salt     BLOB,                     -- 16 random bytes; NULL as leaf, or the body was pruned
  leaf     BLOB,                     -- SHA-256 of tag, salt and body; NULL: the log is not built up to here
  body     BLOB    NOT NULL,         -- JSON; empty once it is pruned
  UNIQUE (org_id, seq)
) STRICT;
CREATE INDEX events_by_time ON events (org_id, at);
CREATE INDEX events_by_repo ON events (repo_id, seq) WHERE type <> 'radar';
CREATE INDEX events_of_radar ON events (org_id, seq) WHERE type = 'radar';
CREATE INDEX events_of_org ON events (org_id, seq) WHERE repo_id IS NULL;

-- A row is an event of an administrative action, with what lists of them are filtered by.
CREATE TABLE audits (
  org_id INTEGER NOT NULL REFERENCES orgs,
  seq    INTEGER NOT NULL,
  event  INTEGER NOT NULL REFERENCES events,
  kind   TEXT    NOT NULL, -- of resource, such as token
  action TEXT    NOT NULL, -- such as token.created
  repo   TEXT    NOT NULL, -- its name at that time, in lower case
  actor  TEXT    NOT NULL, -- the ID of the token, or else the name
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

-- A row is an event of a violation, of which there are few among many others.
CREATE TABLE violation_events (
  org_id  INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  repo_id INTEGER NOT NULL,
  event   INTEGER NOT NULL REFERENCES events,
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

-- A row says that the database was restored from a backup, which lost the events of an org from a number on.
CREATE TABLE restores (
  org_id   INTEGER NOT NULL REFERENCES orgs,
  at       INTEGER NOT NULL,
  next_seq INTEGER NOT NULL, -- of the org in the backup
  PRIMARY KEY (org_id, at)
) STRICT, WITHOUT ROWID;

-- A row is an epoch of the transparency log of an org: its leaf n is the event with the seq first_seq + n.
CREATE TABLE logs (
  id         INTEGER PRIMARY KEY,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  epoch      INTEGER NOT NULL,            -- from 1
  first_seq  INTEGER NOT NULL,
  origin     TEXT    NOT NULL DEFAULT '', -- fixed by the first checkpoint
  vkey       TEXT    NOT NULL DEFAULT '', -- the key of the log, as a verifier key of a signed note
  size       INTEGER NOT NULL DEFAULT 0,  -- of the newest checkpoint
  checkpoint TEXT    NOT NULL DEFAULT '', -- the newest checkpoint with its cosignatures
  signed_at  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, epoch)
) STRICT;

-- A row is a tile of up to 256 hashes of a log (C2SP tlog-tiles); one of level 0 is written when it is full.
CREATE TABLE tiles (
  log_id INTEGER NOT NULL REFERENCES logs,
  level  INTEGER NOT NULL,
  n      INTEGER NOT NULL,
  hashes BLOB    NOT NULL,
  PRIMARY KEY (log_id, level, n)
) STRICT, WITHOUT ROWID;

-- A row is a key of receipts that a log announces; its private half is never in the database.
CREATE TABLE receipt_keys (
  log_id     INTEGER NOT NULL REFERENCES logs,
  not_after  INTEGER NOT NULL,
  key        TEXT    NOT NULL, -- hex SHA-256 of public_key
  not_before INTEGER NOT NULL,
  public_key BLOB    NOT NULL, -- DER SubjectPublicKeyInfo
  event_id   TEXT    NOT NULL, -- the event that announces it
  PRIMARY KEY (log_id, not_after, key)
) STRICT, WITHOUT ROWID;

---- store/signers: who signs, and what statements are called ----

-- A row is whom an org trusts to sign: a key, a root that certifies keys, or an entry of the allow-list of Sigstore.
CREATE TABLE identities (
  id               INTEGER PRIMARY KEY,
  identity_id      TEXT    NOT NULL UNIQUE,
  org_id           INTEGER NOT NULL REFERENCES orgs,
  kind             TEXT    NOT NULL,            -- key, root or sigstore
  dn               TEXT    NOT NULL,
  email            TEXT    NOT NULL,
  emails           TEXT    NOT NULL DEFAULT '', -- all of them, one per line, if there are several
  logins           TEXT    NOT NULL DEFAULT '', -- at forges, one per line
  fingerprint      TEXT    NOT NULL,
  pem              TEXT    NOT NULL,
  sigstore         TEXT    NOT NULL DEFAULT '', -- the entry of the allow-list, JSON
  may              TEXT    NOT NULL DEFAULT '', -- patterns of the predicates that it may attest, one per line; '': all
  dn_pattern       TEXT    NOT NULL DEFAULT '', -- the DNs that a root may certify; '': all
  event_id         TEXT    NOT NULL DEFAULT '', -- the latest event about it
  not_after        INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  revoked_at       INTEGER NOT NULL DEFAULT 0,
  distrusted_since INTEGER NOT NULL DEFAULT 0   -- its key was compromised: its evidence does not count from then on
) STRICT;
CREATE INDEX identities_by_org ON identities (org_id);
CREATE UNIQUE INDEX identities_active ON identities (org_id, kind, fingerprint) WHERE revoked_at = 0;
CREATE INDEX identities_expiring ON identities (org_id, not_after) WHERE revoked_at = 0 AND not_after > 0;
CREATE INDEX identities_to_log ON identities (id) WHERE event_id = '';

-- A row is a CA that certifies the keys of CI jobs of an org; its private key is in log.key_dir.
CREATE TABLE cas (
  id          INTEGER PRIMARY KEY,
  org_id      INTEGER NOT NULL REFERENCES orgs,
  purpose     TEXT    NOT NULL, -- ci
  identity_id TEXT    NOT NULL, -- the root that its certificates chain to
  created_at  INTEGER NOT NULL,
  retired_at  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX cas_by_org ON cas (org_id, id);
CREATE UNIQUE INDEX cas_in_use ON cas (org_id, purpose) WHERE retired_at = 0;

-- A row is a version of a trusted root of Sigstore that an org has set; the highest version of a name counts.
CREATE TABLE trusted_roots (
  id         INTEGER PRIMARY KEY,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  name       TEXT    NOT NULL,
  version    INTEGER NOT NULL, -- from 1
  digest     TEXT    NOT NULL, -- hex SHA-256 of the document
  document   BLOB    NOT NULL, -- the JSON of a TrustedRoot; empty: it was removed
  event_id   TEXT    NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX trusted_roots_by_name ON trusted_roots (org_id, name, version);
CREATE INDEX trusted_roots_by_org ON trusted_roots (org_id, id);

-- A row is a DN that has signed in an org, with the person behind it.
CREATE TABLE signers (
  id          INTEGER PRIMARY KEY,
  org_id      INTEGER NOT NULL REFERENCES orgs,
  dn          TEXT    NOT NULL,
  cn          TEXT    NOT NULL,
  folded      TEXT    NOT NULL DEFAULT '', -- the DN as people are compared by it, without case and blanks
  person      INTEGER NOT NULL DEFAULT 0,  -- a signer, the same for all signers and keys of the person
  individual  INTEGER NOT NULL DEFAULT 0,  -- a person, the same for people with a common name, who count once
  distinct_by INTEGER NOT NULL DEFAULT 0,  -- who says that it shares no name: 1 an admin; 2, 3 an upgrade, 3 not logged
  UNIQUE (org_id, dn)
) STRICT;
CREATE INDEX signers_by_cn ON signers (org_id, cn);
CREATE INDEX signers_by_fold ON signers (org_id, folded);
CREATE INDEX signers_by_person ON signers (org_id, person);
CREATE INDEX signers_to_log ON signers (id) WHERE distinct_by = 3;
CREATE INDEX signers_distinct ON signers (org_id) WHERE distinct_by > 1;

-- A row is a name or an e-mail address that a signer has ever had, as policies compare it with authors.
CREATE TABLE signer_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  name      TEXT    NOT NULL,
  signer_id INTEGER NOT NULL REFERENCES signers,
  PRIMARY KEY (org_id, name, signer_id)
) STRICT, WITHOUT ROWID;

-- A row is a key that has signed in an org: two people may share a DN, and one may have two keys.
CREATE TABLE keys (
  id      INTEGER PRIMARY KEY,
  org_id  INTEGER NOT NULL REFERENCES orgs,
  digest  BLOB    NOT NULL,           -- SHA-256 of the SubjectPublicKeyInfo
  person  INTEGER NOT NULL DEFAULT 0, -- as that of a signer
  claimed INTEGER NOT NULL DEFAULT 0, -- 1: a registration claims that it signed a commit
  UNIQUE (org_id, digest)
) STRICT;
CREATE INDEX keys_by_person ON keys (org_id, person);

-- A row is a predicate of an org, such as test:go.
CREATE TABLE predicates (
  id           INTEGER PRIMARY KEY,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  name         TEXT    NOT NULL,
  attestations INTEGER NOT NULL DEFAULT 0, -- the number of all
  last_at      INTEGER NOT NULL DEFAULT 0, -- when the last one was recorded
  UNIQUE (org_id, name)
) STRICT;
CREATE INDEX predicates_by_org ON predicates (org_id);

-- A row is a predicate type of the statements of an org.
CREATE TABLE predicate_types (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  uri    TEXT    NOT NULL,
  UNIQUE (org_id, uri)
) STRICT;

---- store/access: who may use an org ----

-- A row is an API token, or the sign-in of a member.
CREATE TABLE tokens (
  id           INTEGER PRIMARY KEY,
  token_id     TEXT    NOT NULL UNIQUE,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  name         TEXT    NOT NULL,
  hash         BLOB    NOT NULL UNIQUE,     -- SHA-256 of the secret
  permission   INTEGER NOT NULL,            -- a scope
  is_limited   INTEGER NOT NULL DEFAULT 0,  -- 1: it is for the repos in token_repos only
  is_sign_in   INTEGER NOT NULL DEFAULT 0,
  member_id    INTEGER NOT NULL DEFAULT 0,  -- who signed in, or else created it
  rule_id      INTEGER NOT NULL DEFAULT 0,  -- the exchange rule that has given it
  created_by   TEXT    NOT NULL DEFAULT '',
  auth_time    INTEGER NOT NULL DEFAULT 0,  -- when the provider last authenticated the person of a sign-in
  client       TEXT    NOT NULL DEFAULT '', -- the oldest version of ledgerd that has used it
  client_at    INTEGER NOT NULL DEFAULT 0,  -- when
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL DEFAULT 0,
  revoked_at   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tokens_by_org ON tokens (org_id);
CREATE INDEX tokens_by_rule ON tokens (rule_id, expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_exchanged ON tokens (expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_by_member ON tokens (member_id, id) WHERE member_id > 0;
CREATE INDEX tokens_of_sign_ins ON tokens (expires_at) WHERE is_sign_in = 1;
CREATE INDEX tokens_listed ON tokens (org_id, id) WHERE is_sign_in = 0;
CREATE INDEX tokens_signed_in ON tokens (org_id, id) WHERE is_sign_in = 1 AND revoked_at = 0;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0 AND is_sign_in = 0;

-- A row is a repo that a limited token is for.
CREATE TABLE token_repos (
  token_id INTEGER NOT NULL REFERENCES tokens,
  repo_id  INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (token_id, repo_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX token_repos_by_repo ON token_repos (repo_id);

-- A row is a session of the web interface, which has the permissions of its token and ends with it.
CREATE TABLE sessions (
  hash       BLOB    PRIMARY KEY, -- SHA-256 of the secret
  token_id   INTEGER NOT NULL REFERENCES tokens,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_token ON sessions (token_id, created_at);

-- A row is an OIDC issuer whose tokens an org takes in exchange for API tokens.
CREATE TABLE issuers (
  id         INTEGER PRIMARY KEY,
  issuer_id  TEXT    NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  url        TEXT    NOT NULL,
  jwks       TEXT    NOT NULL, -- its keys, if they were pasted; '': it is asked for them
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX issuers_by_org ON issuers (org_id, id);
CREATE UNIQUE INDEX issuers_by_url ON issuers (org_id, url) WHERE removed_at = 0;

-- A row is a rule by which tokens of an issuer are exchanged.
CREATE TABLE exchange_rules (
  id         INTEGER PRIMARY KEY,
  rule_id    TEXT    NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  issuer_id  INTEGER NOT NULL REFERENCES issuers,
  subject    TEXT    NOT NULL, -- the ID of the repository or project on the forge
  dn         TEXT    NOT NULL, -- as whom its jobs may sign; '': they may not
  rule       TEXT    NOT NULL, -- JSON, without repos
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX exchange_rules_by_org ON exchange_rules (org_id, id);
CREATE INDEX exchange_rules_by_subject ON exchange_rules (issuer_id, subject, id);

-- A row is a repo that the tokens of an exchange rule are for.
CREATE TABLE exchange_rule_repos (
  rule_id INTEGER NOT NULL REFERENCES exchange_rules,
  repo_id INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (rule_id, repo_id)
) STRICT, WITHOUT ROWID;

-- A row is a token of an issuer that was exchanged: it counts once, and is kept until it expires.
CREATE TABLE used_tokens (
  org_id INTEGER NOT NULL REFERENCES orgs,
  digest BLOB    NOT NULL, -- SHA-256 of the issuer and of the token's jti
  until  INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_tokens_by_end ON used_tokens (until);

-- A row is a person who signs in with an OIDC provider; it is never deleted, so that nobody else gets the DN.
CREATE TABLE members (
  id           INTEGER PRIMARY KEY,
  member_id    TEXT    NOT NULL UNIQUE,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  issuer       TEXT    NOT NULL, -- the account is the issuer and the subject
  subject      TEXT    NOT NULL,
  dn           TEXT    NOT NULL,
  folded       TEXT    NOT NULL, -- the DN, folded
  name         TEXT    NOT NULL, -- what the provider calls the person, for display
  email        TEXT    NOT NULL, -- verified by the provider
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

-- A row is a rule by which people become members.
CREATE TABLE member_rules (
  id         INTEGER PRIMARY KEY,
  rule_id    TEXT    NOT NULL UNIQUE,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  issuer     TEXT    NOT NULL,
  claim      TEXT    NOT NULL,
  value      TEXT    NOT NULL,
  role       INTEGER NOT NULL,
  dn         TEXT    NOT NULL, -- a template
  created_at INTEGER NOT NULL,
  removed_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX member_rules_by_org ON member_rules (org_id, id);
CREATE INDEX member_rules_by_issuer ON member_rules (issuer, org_id) WHERE removed_at = 0;

-- A row is a passkey with which a member confirms reviews; it is never deleted.
CREATE TABLE passkeys (
  id            INTEGER PRIMARY KEY,
  passkey_id    TEXT    NOT NULL UNIQUE,
  org_id        INTEGER NOT NULL REFERENCES orgs,
  member_id     INTEGER NOT NULL REFERENCES members,
  name          TEXT    NOT NULL, -- what the member calls it
  rp_id         TEXT    NOT NULL, -- the domain that it is for
  credential_id BLOB    NOT NULL, -- how the device knows it
  public_key    BLOB    NOT NULL, -- in the form of COSE
  created_at    INTEGER NOT NULL,
  removed_at    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX passkeys_by_org ON passkeys (org_id, id);
CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (member_id, credential_id);
CREATE INDEX passkeys_by_member ON passkeys (member_id, id);

-- A row is a challenge that a device must answer to enrol a passkey; it counts once.
CREATE TABLE passkey_challenges (
  digest   BLOB    PRIMARY KEY,                -- SHA-256 of the challenge
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_challenges_by_token ON passkey_challenges (token_id, until);
CREATE INDEX passkey_challenges_by_end ON passkey_challenges (until);

-- A row is a review that was prepared for a person to sign; it counts once.
CREATE TABLE review_drafts (
  digest   BLOB    PRIMARY KEY,                -- SHA-256 of the statement
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  repo_id  INTEGER NOT NULL REFERENCES repos,
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX review_drafts_by_token ON review_drafts (token_id, until);
CREATE INDEX review_drafts_by_repo ON review_drafts (repo_id);
CREATE INDEX review_drafts_by_end ON review_drafts (until);

-- A row is an org that used a provider before hosts named the orgs of providers: if the host names none, it may go on.
CREATE TABLE provider_orgs (
  issuer TEXT    NOT NULL,
  org_id INTEGER NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
) STRICT, WITHOUT ROWID;

---- store/webhooks: what others receive ----

-- A row is a webhook of a repo.
CREATE TABLE webhooks (
  id              INTEGER PRIMARY KEY,
  webhook_id      TEXT    NOT NULL UNIQUE,
  repo_id         INTEGER NOT NULL REFERENCES repos,
  url             TEXT    NOT NULL,
  events          INTEGER NOT NULL,            -- bits of the types: attestation 1, state 2, policy 4, radar 8
  description     TEXT    NOT NULL,
  secret          TEXT    NOT NULL,
  previous_secret TEXT    NOT NULL DEFAULT '',
  previous_until  INTEGER NOT NULL DEFAULT 0,
  auth_header     TEXT    NOT NULL DEFAULT '',  -- the value of the Authorization header, after random text
  active          INTEGER NOT NULL,
  disabled_at     INTEGER NOT NULL DEFAULT 0,
  disabled_reason TEXT    NOT NULL DEFAULT '',
  failing_since   INTEGER NOT NULL DEFAULT 0,  -- the first failure since the last success
  failures        INTEGER NOT NULL DEFAULT 0,  -- how many there were since then
  created_at      INTEGER NOT NULL,
  changed_at      INTEGER NOT NULL,            -- when url or active last changed
  deleted_at      INTEGER NOT NULL DEFAULT 0   -- its rows are deleted in the background, then the webhook
) STRICT;
CREATE INDEX webhooks_by_repo ON webhooks (repo_id, id) WHERE deleted_at = 0;
CREATE INDEX webhooks_active ON webhooks (id) WHERE active = 1;
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at > 0;
CREATE INDEX webhooks_troubled ON webhooks (repo_id, id) WHERE deleted_at = 0 AND (active = 0 OR failing_since > 0);

-- A row is the delivery of an event to a webhook, which is written with the event and stays for a while when it ends.
CREATE TABLE outbox (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  event       INTEGER REFERENCES events,  -- NULL: a ping
  ping        TEXT,                       -- the body of a ping, which is not an event of the ledger
  status      TEXT    NOT NULL,
  due_at      INTEGER NOT NULL,           -- the next attempt, or the lease's end; 1: it goes first; 0: finished
  leased      INTEGER NOT NULL DEFAULT 0, -- 1 while a dispatcher attempts it
  attempts    INTEGER NOT NULL DEFAULT 0, -- the number of all
  tries       INTEGER NOT NULL DEFAULT 0, -- those since it was queued or redelivered
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL DEFAULT 0, -- 0 while pending
  PRIMARY KEY (webhook_id, delivery_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX outbox_by_event ON outbox (webhook_id, event);
CREATE INDEX outbox_due ON outbox (webhook_id, due_at) WHERE due_at > 0;
CREATE INDEX outbox_ended ON outbox (webhook_id, ended_at) WHERE ended_at > 0;
CREATE INDEX outbox_failed ON outbox (webhook_id, delivery_id) WHERE status = 'failed';

-- A row is an attempt of a delivery.
CREATE TABLE attempts (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  number      INTEGER NOT NULL, -- from 1
  at          INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  status      INTEGER NOT NULL, -- of the HTTP response; 0: there was none
  error       TEXT    NOT NULL,
  request     BLOB    NOT NULL, -- JSON
  response    BLOB    NOT NULL, -- JSON
  PRIMARY KEY (webhook_id, delivery_id, number)
) STRICT, WITHOUT ROWID;

---- store/history: what commit objects say of the history ----

-- A row is the object of a commit that is not registered: its place in the history, and who wrote it, is known.
CREATE TABLE ancestors (
  repo_id     INTEGER NOT NULL REFERENCES repos,
  sha         TEXT    NOT NULL,
  signing_key TEXT    NOT NULL, -- the fingerprint of the SSH key that signed it
  object      BLOB    NOT NULL,
  PRIMARY KEY (repo_id, sha)
) STRICT, WITHOUT ROWID;

---- store/facts: what is known of commits ----

-- A row is a commit, with what registrations say of it, and with its state and what that was derived from.
CREATE TABLE commits (
  id             INTEGER PRIMARY KEY,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  sha            TEXT    NOT NULL,
  branch         TEXT    NOT NULL DEFAULT '',
  target         TEXT    NOT NULL DEFAULT '',  -- the newest of targets
  targets        TEXT    NOT NULL DEFAULT '',  -- all that were ever claimed, one per line; '': no other than target
  base           TEXT    NOT NULL DEFAULT '',
  author_name    TEXT    NOT NULL DEFAULT '',
  author_email   TEXT    NOT NULL DEFAULT '',
  writers        TEXT    NOT NULL DEFAULT '',  -- others who wrote it, such as committers and co-authors, a JSON array
  signing_keys   TEXT    NOT NULL DEFAULT '',  -- fingerprints of the SSH keys that signed it, one per line
  committed_at   INTEGER NOT NULL DEFAULT 0,
  tree           TEXT    NOT NULL DEFAULT '',  -- that its object names, in hex; '': the object is not known
  tree_id        INTEGER NOT NULL DEFAULT 0,   -- in trees; 0: no other commit of the repo has it
  merged         INTEGER NOT NULL DEFAULT 0,   -- what claims say: 1 it is a merge, 2 it was merged, 3 both
  gap            INTEGER NOT NULL DEFAULT 0,   -- 1: an object was not known when the state was derived
  attestations   INTEGER NOT NULL DEFAULT 0,   -- the number of all
  newest         INTEGER NOT NULL DEFAULT 0,   -- the newest of them, which names the one before, and so on
  state          INTEGER NOT NULL,
  state_since    INTEGER NOT NULL,
  standing       INTEGER NOT NULL DEFAULT 4,   -- of one that runs, or that a merge names as its source; 4 of all others
  failing_since  INTEGER NOT NULL DEFAULT 0,   -- when a fail or error began to block a requirement
  expires        INTEGER NOT NULL DEFAULT 0,   -- when the next evidence that counts expires
  policy_version INTEGER NOT NULL,             -- of the contract that the state was derived by
  basis          INTEGER NOT NULL DEFAULT 0,   -- sum of the versions of its tree and of the commits that claims name then
  distrusts      INTEGER NOT NULL DEFAULT 0,   -- how often evidence of the org had been distrusted then
  facts          BLOB    NOT NULL DEFAULT x'', -- SHA-256 of what its last event of the type commit has
  registered_at  INTEGER NOT NULL,
  message        TEXT    NOT NULL DEFAULT '',
  UNIQUE (repo_id, sha)
) STRICT;
CREATE INDEX commits_by_repo ON commits (repo_id, id);
CREATE INDEX commits_by_state ON commits (repo_id, state, id);
CREATE INDEX commits_by_branch ON commits (repo_id, branch, id) WHERE branch <> '';
CREATE INDEX commits_by_author_name ON commits (repo_id, author_name) WHERE author_name <> '';
CREATE INDEX commits_by_author_email ON commits (repo_id, author_email) WHERE author_email <> '';
CREATE INDEX commits_by_tree ON commits (repo_id, tree, id) WHERE tree <> '';
CREATE INDEX commits_by_tree_id ON commits (tree_id, id) WHERE tree_id > 0;
CREATE INDEX commits_failing ON commits (repo_id, id) WHERE failing_since > 0;
CREATE INDEX commits_expiring_by_repo ON commits (repo_id, expires) WHERE expires > 0;
CREATE INDEX commits_with_gap ON commits (repo_id, id) WHERE gap = 1;

-- A row has the long fields of a commit, which lists and derivations do not read.
CREATE TABLE commit_details (
  commit_id INTEGER PRIMARY KEY REFERENCES commits,
  parents   BLOB    NOT NULL,            -- JSON arrays
  ancestors BLOB    NOT NULL,
  contained BLOB    NOT NULL,
  changes   BLOB,                        -- NULL: there is no change record
  paths     BLOB,                        -- all changed paths, a JSON array; NULL: those of changes
  paths_key TEXT    NOT NULL DEFAULT ''  -- equal for equal paths; '': those of an earlier release, unchanged
) STRICT;

-- A row is what an administrator has corrected in a commit.
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

-- A row is the number of commits of a repo in a state.
CREATE TABLE repo_states (
  repo_id INTEGER NOT NULL REFERENCES repos,
  state   INTEGER NOT NULL,
  commits INTEGER NOT NULL,
  PRIMARY KEY (repo_id, state)
) STRICT, WITHOUT ROWID;

-- A row is an attestation.
CREATE TABLE attestations (
  id               INTEGER PRIMARY KEY,
  attestation_id   TEXT    NOT NULL,
  repo_id          INTEGER NOT NULL REFERENCES repos,
  commit_id        INTEGER NOT NULL REFERENCES commits,
  previous         INTEGER NOT NULL,            -- the attestation of the commit before
  predicate_id     INTEGER NOT NULL REFERENCES predicates,
  type_id          INTEGER NOT NULL REFERENCES predicate_types,
  slot             TEXT    NOT NULL,            -- what it is about in addition to the commit
  status           TEXT    NOT NULL,
  base             TEXT    NOT NULL DEFAULT '', -- a review is about the commits after it; '': about the commit alone
  reason           TEXT    NOT NULL DEFAULT '', -- why the commit was rolled back, or is deployed again
  mapping_version  INTEGER NOT NULL,            -- of the rules that mapped the statement
  signer_id        INTEGER NOT NULL REFERENCES signers,
  key_id           INTEGER NOT NULL REFERENCES keys,
  identity_id      TEXT    NOT NULL,            -- the key or root that made the signer trusted
  emails           TEXT    NOT NULL,            -- of the signer, one per line
  payload_digest   BLOB    NOT NULL,
  assertion        BLOB,                        -- SHA-256 of the assertion of a passkey; NULL: not confirmed
  while_promotable INTEGER NOT NULL,            -- 1: recorded while the commit was PROMOTABLE or DEPLOYED
  event_id         TEXT    NOT NULL,
  duration_ms      INTEGER NOT NULL,
  finished_at      INTEGER NOT NULL DEFAULT 0,  -- by the statement; of a repeated result, the latest time
  recorded_at      INTEGER NOT NULL,
  aged_from        INTEGER NOT NULL DEFAULT 0   -- when its age begins, if the clock of recorded_at was wrong
) STRICT;
CREATE INDEX attestations_by_time ON attestations (repo_id, recorded_at);
CREATE INDEX attestations_by_predicate ON attestations (repo_id, predicate_id, recorded_at);
CREATE INDEX attestations_by_signer ON attestations (repo_id, signer_id, recorded_at);
CREATE UNIQUE INDEX attestations_by_commit ON attestations (commit_id, payload_digest, signer_id, key_id);
CREATE INDEX attestations_not_passed ON attestations (repo_id, status, recorded_at) WHERE status <> 'pass';

-- A row is the envelope of an attestation, byte for byte as it was posted.
CREATE TABLE envelopes (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  payload_at     INTEGER,          -- where payload is in body; NULL: body is all; -1: pruned, body is a SHA-256
  body           BLOB    NOT NULL, -- without the payload
  payload        BLOB,             -- decoded from base64
  assertion      BLOB              -- with which a passkey has confirmed it
) STRICT;

-- A row is the latest attestation of a signer for a predicate and slot of a commit: a derivation reads no others.
CREATE TABLE latest (
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  slot           TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  PRIMARY KEY (commit_id, predicate_id, slot, signer_id)
) STRICT, WITHOUT ROWID;

-- A row is an artifact that a signer links with a commit: by the first build, or by the first other statement.
CREATE TABLE artifacts (
  org_id         INTEGER NOT NULL REFERENCES orgs,
  digest         BLOB    NOT NULL, -- its length says which: 32 bytes SHA-256, 48 SHA-384, 64 SHA-512
  commit_id      INTEGER NOT NULL, -- these have no REFERENCES, which would take an index for each
  identity_id    TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL,
  is_build       INTEGER NOT NULL, -- 1: the predicate of the attestation begins with build:
  attestation_id INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id, is_build)
) STRICT, WITHOUT ROWID;

-- A row is an expression of a contract.
CREATE TABLE expressions (
  id   INTEGER PRIMARY KEY,
  text TEXT    NOT NULL UNIQUE
) STRICT;

-- A row is what an expression says of an attestation.
CREATE TABLE verdicts (
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  expression_id  INTEGER NOT NULL REFERENCES expressions,
  verdict        INTEGER NOT NULL, -- 1: true
  error          TEXT    NOT NULL, -- why it could not be evaluated
  PRIMARY KEY (attestation_id, expression_id)
) STRICT, WITHOUT ROWID;

-- A row is an exception: an attestation that excuses a commit from a requirement.
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

-- A row is a change record: an attestation of the paths in which its commit differs from its base.
CREATE TABLE change_records (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  paths          BLOB    NOT NULL -- a JSON array
) STRICT;

-- A row is a tree that several commits of a repo have.
CREATE TABLE trees (
  id      INTEGER PRIMARY KEY,
  version INTEGER NOT NULL, -- grows whenever evidence of any of the commits changes
  commits INTEGER NOT NULL  -- how many they are
) STRICT;

-- A row is the latest attestation of a signer for a predicate and slot, of all commits with a tree.
CREATE TABLE tree_latest (
  tree_id        INTEGER NOT NULL REFERENCES trees,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  slot           TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  stated         INTEGER NOT NULL, -- 0: it has no outcome, and does not replace one that has
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  commit_id      INTEGER NOT NULL, -- without REFERENCES: each update of a commit would look for its rows
  failed         INTEGER NOT NULL, -- 1: a fail or error
  PRIMARY KEY (tree_id, predicate_id, slot, signer_id, stated)
) STRICT, WITHOUT ROWID;
CREATE INDEX tree_latest_failed ON tree_latest (tree_id) WHERE failed = 1;

-- A row is a commit that a claim of a merge names: the source, or that of the mainline.
CREATE TABLE merge_sides (
  commit_id INTEGER PRIMARY KEY,
  version   INTEGER NOT NULL,           -- grows whenever its evidence, or met, changes
  met       TEXT    NOT NULL DEFAULT '' -- the requirements that it meets, and until when; '': it is not of the mainline
) STRICT;

---- store/overlaps: the radar ----

-- A row is a tip: the commit that was registered last for a branch.
CREATE TABLE tips (
  commit_id      INTEGER PRIMARY KEY REFERENCES commits,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  sha            TEXT    NOT NULL,
  branch         TEXT    NOT NULL,
  flight         INTEGER NOT NULL,           -- 1 flying, 2 deployed, 3 landed, 4 superseded, 5 withdrawn, 6 forgotten
  place          INTEGER NOT NULL,           -- of two tips, the one with the greater place was registered later
  seq            INTEGER NOT NULL,           -- grows whenever the tip changes for the index in memory
  lineage        TEXT    NOT NULL,           -- the commits that it is built on
  policy_version INTEGER NOT NULL,           -- of the contract of the last scan; 0: it is to be scanned
  level          INTEGER NOT NULL DEFAULT 0, -- the highest of its overlaps with earlier tips so far
  truncated      INTEGER NOT NULL DEFAULT 0, -- 1: there were more overlaps than are stored
  opened_at      INTEGER NOT NULL,           -- when it came into flight
  ended_at       INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX tips_by_branch ON tips (repo_id, branch) WHERE flight < 4;
CREATE INDEX tips_by_seq ON tips (repo_id, seq);
CREATE INDEX tips_by_place ON tips (repo_id, place) WHERE flight = 1;
CREATE INDEX tips_by_age ON tips (repo_id, opened_at) WHERE flight < 4;
CREATE INDEX tips_done ON tips (repo_id) WHERE flight IN (4, 5);
CREATE INDEX tips_unseen ON tips (repo_id, opened_at) WHERE policy_version = 0 AND flight = 1;
CREATE INDEX tips_in_flight ON tips (repo_id, commit_id) WHERE flight = 1;
CREATE INDEX tips_conflicting ON tips (repo_id, commit_id) WHERE flight = 1 AND level = 3;

-- A row is a pair of tips that overlap: an index by earlier would cost each registration many pages.
CREATE TABLE overlaps (
  later     INTEGER NOT NULL,
  earlier   INTEGER NOT NULL,
  level     INTEGER NOT NULL,
  announced INTEGER NOT NULL, -- the highest level that an event has reported
  since     INTEGER NOT NULL,
  path      TEXT    NOT NULL, -- the one with the strongest overlap, and the reason
  reason    TEXT    NOT NULL,
  PRIMARY KEY (later, earlier)
) STRICT, WITHOUT ROWID;

---- store/states: the state machine ----

-- A row is a change of the state of a commit.
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

-- A row is a deployment that did not count when it was recorded.
CREATE TABLE violations (
  id             INTEGER PRIMARY KEY,
  repo_id        INTEGER NOT NULL REFERENCES repos,
  org_id         INTEGER NOT NULL REFERENCES orgs,
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  state          INTEGER NOT NULL,            -- of the commit, before the deployment was recorded
  opened_at      INTEGER NOT NULL,
  missing        TEXT    NOT NULL,            -- a JSON array of reasons
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

---- store/record: proofs, merges and deployments ----

-- A row is the object of a commit, as it was registered: its hash is the commit's sha.
CREATE TABLE commit_objects (
  commit_id INTEGER PRIMARY KEY,
  object    BLOB    NOT NULL
) STRICT;

-- A row is the claim that a commit is a clean merge of its first parent with a source: the latest of a person.
CREATE TABLE merges (
  attestation_id INTEGER PRIMARY KEY REFERENCES attestations,
  commit_id      INTEGER NOT NULL,
  source_id      INTEGER NOT NULL,
  parent_id      INTEGER NOT NULL DEFAULT 0, -- the commit of the mainline; 0: parent_state counts in its place
  kind           TEXT    NOT NULL,           -- merge, squash, update or rebase
  parent_state   INTEGER NOT NULL,           -- of an early release: of the first parent when the claim was recorded
  reason         TEXT    NOT NULL            -- why nothing carries; '': what the mainline meets decides
) STRICT;
CREATE INDEX merges_by_commit ON merges (commit_id, attestation_id);
CREATE INDEX merges_by_source ON merges (source_id, commit_id);
CREATE INDEX merges_by_parent ON merges (parent_id, commit_id) WHERE parent_id > 0;

-- A row is the latest deployment of a commit to an environment that counts; the predicate is deploy:NAME. With
-- baseline:NAME, it is the latest baseline of a commit, which is never rolled back.
CREATE TABLE deployments (
  repo_id        INTEGER NOT NULL REFERENCES repos,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  commit_id      INTEGER NOT NULL,
  attestation_id INTEGER NOT NULL,
  required       INTEGER NOT NULL,           -- 1: a DEPLOYED requirement named the predicate
  ended_id       INTEGER NOT NULL DEFAULT 0, -- the attestation that rolled it back
  PRIMARY KEY (repo_id, predicate_id, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deployments_present ON deployments (repo_id, predicate_id, attestation_id) WHERE ended_id = 0;
CREATE INDEX deployments_ended ON deployments (repo_id, predicate_id, ended_id) WHERE ended_id > 0;
CREATE INDEX deployments_by_commit ON deployments (commit_id) WHERE ended_id = 0;

-- A row is an environment of a repo: one with deployments, even if none of them counted, or with a baseline. The
-- predicate is deploy:NAME.
CREATE TABLE environments (
  predicate_id INTEGER NOT NULL REFERENCES predicates,
  repo_id      INTEGER NOT NULL REFERENCES repos,
  org_id       INTEGER NOT NULL REFERENCES orgs,
  latest_id    INTEGER NOT NULL, -- the latest deployment or rollback
  PRIMARY KEY (predicate_id, repo_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX environments_by_repo ON environments (repo_id, latest_id);
CREATE INDEX environments_by_org ON environments (org_id, repo_id);

---- store/backlog: what is done later ----

-- A row is a job for the background; one that stays, such as that of what expires, has the time of its next turn.
CREATE TABLE backlog (
  repo_id    INTEGER NOT NULL REFERENCES repos,
  kind       TEXT    NOT NULL,
  ref        INTEGER NOT NULL,            -- the row id of what it is about, such as a commit; 0: the repo as a whole
  org_id     INTEGER NOT NULL REFERENCES orgs,
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  position   INTEGER NOT NULL,            -- the row id up to which it is done
  again      INTEGER NOT NULL DEFAULT 0,  -- 1: it begins again at its end
  since      INTEGER NOT NULL,            -- when it was asked for
  not_before INTEGER NOT NULL,
  tries      INTEGER NOT NULL DEFAULT 0,  -- that have failed in a row
  error      TEXT    NOT NULL DEFAULT '', -- of the last of them
  holder     TEXT    NOT NULL DEFAULT '', -- the server that works on it
  held_until INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, kind, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX backlog_by_time ON backlog (org_id, kind, not_before);

---- store/upkeep: the clock, and the key of the cursors of lists ----

-- At most one row: the time that an operator has accepted although newer records exist.
CREATE TABLE clock (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  accepted_at INTEGER NOT NULL, -- that time, or a later one
  stamp       INTEGER NOT NULL  -- the newest in ids at that time; 0: none is ahead of the clock
) STRICT;

-- The one row is the key that seals the cursors of lists. All servers of the database have the same.
CREATE TABLE cursor_key (
  id  INTEGER PRIMARY KEY CHECK (id = 1),
  key BLOB    NOT NULL -- 32 random bytes
) STRICT;
INSERT INTO cursor_key (id, key) VALUES (1, randomblob(32));
