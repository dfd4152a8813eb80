-- The trusted roots of Sigstore that an org has set, by name. Each change is a version; the highest
-- one counts. An empty document is a removed one.
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
-- The entry of the allow-list, as JSON, of an identity of the kind sigstore.
ALTER TABLE identities ADD COLUMN sigstore TEXT NOT NULL DEFAULT '';

-- The OIDC issuers whose tokens an org takes in exchange for API tokens.
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
-- The rules by which tokens of issuers are exchanged.
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
-- The repos that the tokens of a rule are for.
CREATE TABLE exchange_rule_repos (
  rule_id INTEGER NOT NULL REFERENCES exchange_rules,
  repo_id INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (rule_id, repo_id)
) STRICT, WITHOUT ROWID;
-- The tokens of issuers that count once, by digest, until they expire.
CREATE TABLE used_tokens (
  org_id INTEGER NOT NULL REFERENCES orgs,
  digest BLOB NOT NULL, -- SHA-256 of the issuer and of the token's jti
  until  INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_tokens_by_end ON used_tokens (until);
-- Which rule has given a token; 0: none.
ALTER TABLE tokens ADD COLUMN rule_id INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tokens_by_rule ON tokens (rule_id, expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_exchanged ON tokens (expires_at) WHERE rule_id > 0;
DROP INDEX tokens_expiring;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at) WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0;

-- The CAs of an org that certify the keys of CI jobs. Their private keys are in log.key_dir.
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
