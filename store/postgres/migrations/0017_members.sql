ALTER TABLE tokens RENAME COLUMN scope TO permission;
UPDATE tokens SET permission = 4 WHERE permission = 3;
CREATE TABLE members (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), member_id text COLLATE "C" NOT NULL UNIQUE,
  org_id bigint NOT NULL REFERENCES orgs, issuer text COLLATE "C" NOT NULL, subject text COLLATE "C" NOT NULL,
  dn text COLLATE "C" NOT NULL, folded text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
  email text COLLATE "C" NOT NULL, role bigint NOT NULL, by_rule bigint NOT NULL, created_at bigint NOT NULL,
  signed_in_at bigint NOT NULL DEFAULT 0, removed_at bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX members_by_account ON members (org_id, issuer, subject);
CREATE INDEX members_by_subject ON members (issuer, subject);
CREATE UNIQUE INDEX members_by_dn ON members (org_id, folded);
CREATE INDEX members_by_org ON members (org_id, id);
CREATE TABLE member_rules (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), rule_id text COLLATE "C" NOT NULL UNIQUE,
  org_id bigint NOT NULL REFERENCES orgs, issuer text COLLATE "C" NOT NULL, claim text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL, role bigint NOT NULL, dn text COLLATE "C" NOT NULL, created_at bigint NOT NULL,
  removed_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX member_rules_by_org ON member_rules (org_id, id);
CREATE INDEX member_rules_by_issuer ON member_rules (issuer, org_id) WHERE removed_at = 0;
ALTER TABLE tokens ADD COLUMN member_id bigint NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN is_sign_in bigint NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN auth_time bigint NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN created_by text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN is_limited bigint NOT NULL DEFAULT 0;
CREATE INDEX tokens_by_member ON tokens (member_id, id) WHERE member_id > 0;
CREATE INDEX tokens_of_sign_ins ON tokens (expires_at) WHERE is_sign_in = 1;
CREATE INDEX tokens_listed ON tokens (org_id, id) WHERE is_sign_in = 0;
CREATE INDEX tokens_signed_in ON tokens (org_id, id) WHERE is_sign_in = 1 AND revoked_at = 0;
DROP INDEX tokens_expiring;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at, id)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0 AND is_sign_in = 0;
CREATE TABLE token_repos (
  token_id bigint NOT NULL REFERENCES tokens, repo_id bigint NOT NULL REFERENCES repos,
  PRIMARY KEY (token_id, repo_id)
);
CREATE INDEX token_repos_by_repo ON token_repos (repo_id);
CREATE TABLE review_drafts (
  digest bytea PRIMARY KEY, token_id bigint NOT NULL REFERENCES tokens, repo_id bigint NOT NULL REFERENCES repos,
  until bigint NOT NULL
);
CREATE INDEX review_drafts_by_token ON review_drafts (token_id, until);
CREATE INDEX review_drafts_by_repo ON review_drafts (repo_id);
CREATE INDEX review_drafts_by_end ON review_drafts (until);

CREATE TABLE passkeys (
  id bigint PRIMARY KEY DEFAULT nextval('ids'), passkey_id text COLLATE "C" NOT NULL UNIQUE,
  org_id bigint NOT NULL REFERENCES orgs, member_id bigint NOT NULL REFERENCES members,
  name text COLLATE "C" NOT NULL, rp_id text COLLATE "C" NOT NULL, credential_id bytea NOT NULL,
  public_key bytea NOT NULL, created_at bigint NOT NULL, removed_at bigint NOT NULL DEFAULT 0
);
CREATE INDEX passkeys_by_org ON passkeys (org_id, id);
CREATE UNIQUE INDEX passkeys_by_credential ON passkeys (member_id, credential_id);
CREATE INDEX passkeys_by_member ON passkeys (member_id, id);
CREATE TABLE passkey_challenges (
  digest bytea PRIMARY KEY, token_id bigint NOT NULL REFERENCES tokens, until bigint NOT NULL
);
CREATE INDEX passkey_challenges_by_token ON passkey_challenges (token_id, until);
CREATE INDEX passkey_challenges_by_end ON passkey_challenges (until);
ALTER TABLE attestations ADD COLUMN assertion bytea;
ALTER TABLE envelopes ADD COLUMN assertion bytea;
