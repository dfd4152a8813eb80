-- The scope maintain is between write (2) and admin, which was 3. To a server of an earlier release, 4 is
-- the administrator of the host. The column has another name, so that one that still runs reads no token.
ALTER TABLE tokens RENAME COLUMN scope TO permission;
UPDATE tokens SET permission = 4 WHERE permission = 3;

-- The people of an org who sign in with an OIDC provider. A row is never deleted, so that nobody
-- else gets the DN of a former member.
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

-- The rules by which people become members.
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

-- Whose a token is: of a sign-in, the member who signed in; otherwise the member who created it; 0: of no member.
ALTER TABLE tokens ADD COLUMN member_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN is_sign_in INTEGER NOT NULL DEFAULT 0;
-- When the provider last authenticated the person of a sign-in; 0: it does not say.
ALTER TABLE tokens ADD COLUMN auth_time INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
-- 1: the token is for the repos in token_repos only.
ALTER TABLE tokens ADD COLUMN is_limited INTEGER NOT NULL DEFAULT 0;
CREATE INDEX tokens_by_member ON tokens (member_id, id) WHERE member_id > 0;
CREATE INDEX tokens_of_sign_ins ON tokens (expires_at) WHERE is_sign_in = 1;
CREATE INDEX tokens_listed ON tokens (org_id, id) WHERE is_sign_in = 0;
CREATE INDEX tokens_signed_in ON tokens (org_id, id) WHERE is_sign_in = 1 AND revoked_at = 0;
DROP INDEX tokens_expiring;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at)
  WHERE revoked_at = 0 AND expires_at > 0 AND rule_id = 0 AND is_sign_in = 0;
CREATE TABLE token_repos (
  token_id INTEGER NOT NULL REFERENCES tokens,
  repo_id  INTEGER NOT NULL REFERENCES repos,
  PRIMARY KEY (token_id, repo_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX token_repos_by_repo ON token_repos (repo_id);

-- Reviews that were prepared for a person to sign. Each counts once.
CREATE TABLE review_drafts (
  digest   BLOB PRIMARY KEY, -- SHA-256 of the statement
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  repo_id  INTEGER NOT NULL REFERENCES repos,
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX review_drafts_by_token ON review_drafts (token_id, until);
CREATE INDEX review_drafts_by_repo ON review_drafts (repo_id);
CREATE INDEX review_drafts_by_end ON review_drafts (until);

-- The passkeys with which members confirm reviews. A row is never deleted.
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

-- The challenges that a device must answer to enrol a passkey. Each counts once.
CREATE TABLE passkey_challenges (
  digest   BLOB PRIMARY KEY, -- SHA-256 of the challenge
  token_id INTEGER NOT NULL REFERENCES tokens, -- the sign-in
  until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX passkey_challenges_by_token ON passkey_challenges (token_id, until);
CREATE INDEX passkey_challenges_by_end ON passkey_challenges (until);

-- The assertion with which a passkey has confirmed the attestation, and its SHA-256; NULL: not confirmed.
ALTER TABLE attestations ADD COLUMN assertion BLOB;
ALTER TABLE envelopes ADD COLUMN assertion BLOB;
