CREATE TABLE trusted_roots (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), org_id bigint NOT NULL REFERENCES orgs,
  name text COLLATE "C" NOT NULL, version bigint NOT NULL,
  digest text COLLATE "C" NOT NULL, document bytea NOT NULL, created_at bigint NOT NULL,
  event_id text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX trusted_roots_by_name ON trusted_roots (org_id, name, version);
CREATE INDEX trusted_roots_by_org ON trusted_roots (org_id, id);
ALTER TABLE identities ADD COLUMN sigstore text COLLATE "C" NOT NULL DEFAULT '';
CREATE TABLE issuers (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), issuer_id text COLLATE "C" NOT NULL UNIQUE,
  org_id bigint NOT NULL REFERENCES orgs, url text COLLATE "C" NOT NULL, jwks text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL, removed_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX issuers_by_org ON issuers (org_id, id);
CREATE UNIQUE INDEX issuers_by_url ON issuers (org_id, url) WHERE removed_at = 0;
CREATE TABLE exchange_rules (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), rule_id text COLLATE "C" NOT NULL UNIQUE,
  org_id bigint NOT NULL REFERENCES orgs, issuer_id bigint NOT NULL REFERENCES issuers,
  subject text COLLATE "C" NOT NULL, dn text COLLATE "C" NOT NULL, rule text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL, removed_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX exchange_rules_by_org ON exchange_rules (org_id, id);
CREATE INDEX exchange_rules_by_subject ON exchange_rules (issuer_id, subject, id);
CREATE TABLE exchange_rule_repos (
  rule_id bigint NOT NULL REFERENCES exchange_rules, repo_id bigint NOT NULL REFERENCES repos,
  PRIMARY KEY (rule_id, repo_id)
);
CREATE TABLE used_tokens (
  org_id bigint NOT NULL REFERENCES orgs, digest bytea NOT NULL, until bigint NOT NULL,
  PRIMARY KEY (org_id, digest)
);
CREATE INDEX used_tokens_by_end ON used_tokens (until);
ALTER TABLE tokens ADD COLUMN rule_id bigint NOT NULL DEFAULT 0;
CREATE INDEX tokens_by_rule ON tokens (rule_id, expires_at) WHERE rule_id > 0;
CREATE INDEX tokens_exchanged ON tokens (expires_at) WHERE rule_id > 0;
DROP INDEX tokens_expiring;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at, id)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0;
CREATE TABLE cas (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), org_id bigint NOT NULL REFERENCES orgs,
  purpose text COLLATE "C" NOT NULL, identity_id text COLLATE "C" NOT NULL, created_at bigint NOT NULL,
  retired_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX cas_by_org ON cas (org_id, id);
CREATE UNIQUE INDEX cas_in_use ON cas (org_id, purpose) WHERE retired_at = 0;
