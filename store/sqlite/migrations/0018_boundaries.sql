-- Boundaries between orgs, and whose names count.

-- The orgs with members or rules of a provider at this migration. They may use the provider if the host names no
-- orgs for it.
CREATE TABLE provider_orgs (
  issuer TEXT NOT NULL,
  org_id INTEGER NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
) STRICT, WITHOUT ROWID;
INSERT INTO provider_orgs (issuer, org_id)
SELECT issuer, org_id FROM members WHERE removed_at = 0
UNION SELECT issuer, org_id FROM member_rules WHERE removed_at = 0;

-- What an org reads of evidence that expires does not depend on other orgs.
CREATE INDEX commits_expiring_by_repo ON commits (repo_id, expires) WHERE expires > 0;

-- The key with which the cursors of lists are sealed. All servers of the database have the same.
CREATE TABLE cursor_key (
  id  INTEGER PRIMARY KEY CHECK (id = 1),
  key BLOB NOT NULL -- 32 random bytes
) STRICT;
INSERT INTO cursor_key (id, key) VALUES (1, randomblob(32));

-- Of each signer, the first statement of a build that links an artifact, and the first other one:
-- by the rules 2 of contracts, only builds link artifacts.
CREATE TABLE artifacts_18 (
  org_id         INTEGER NOT NULL REFERENCES orgs,
  digest         BLOB    NOT NULL, -- its length says which: 32 bytes SHA-256, 48 SHA-384, 64 SHA-512
  commit_id      INTEGER NOT NULL, -- these have no REFERENCES, which would take an index for each
  identity_id    TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL,
  is_build       INTEGER NOT NULL, -- 1 if the predicate of the attestation begins with build:
  attestation_id INTEGER NOT NULL,
  PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id, is_build)
) STRICT, WITHOUT ROWID;
INSERT INTO artifacts_18 (org_id, digest, commit_id, identity_id, signer_id, is_build, attestation_id)
  SELECT l.org_id, l.digest, l.commit_id, l.identity_id, l.signer_id, p.name >= 'build:' AND p.name < 'build;', a.id
  FROM artifacts l JOIN attestations a ON a.id = l.attestation_id JOIN predicates p ON p.id = a.predicate_id;
-- A build that was recorded after another statement about the same artifact, and is about no other.
INSERT INTO artifacts_18 (org_id, digest, commit_id, identity_id, signer_id, is_build, attestation_id)
  SELECT l.org_id, l.digest, l.commit_id, l.identity_id, l.signer_id, 1, min(a.id)
  FROM artifacts_18 l CROSS JOIN attestations a ON a.commit_id = l.commit_id AND a.signer_id = l.signer_id
    AND a.identity_id = l.identity_id AND a.slot = CASE length(l.digest) WHEN 32 THEN 'sha256:' WHEN 48 THEN 'sha384:'
      ELSE 'sha512:' END || lower(hex(l.digest))
  CROSS JOIN predicates p ON p.id = a.predicate_id AND p.name >= 'build:' AND p.name < 'build;'
  WHERE l.is_build = 0 GROUP BY l.org_id, l.digest, l.commit_id, l.identity_id, l.signer_id;
DROP TABLE artifacts;
ALTER TABLE artifacts_18 RENAME TO artifacts;

-- All e-mail addresses of an identity's signer, if there are several, and the logins at forges,
-- one per line.
ALTER TABLE identities ADD COLUMN emails TEXT NOT NULL DEFAULT '';
ALTER TABLE identities ADD COLUMN logins TEXT NOT NULL DEFAULT '';

-- E-mail addresses are compared without plus tags, and no-reply addresses of forges as logins, as
-- identity.FoldName does. The names of signers follow.
WITH
parts AS (
  SELECT org_id, name, signer_id, substr(name, 1, instr(name, '@') - 1) AS account,
    substr(name, instr(name, '@') + 1) AS host
  FROM signer_names WHERE instr(name, '@') > 1
),
forges AS (
  SELECT *, CASE WHEN host LIKE 'users.noreply._%' THEN substr(host, 15) WHEN host LIKE 'noreply._%'
    THEN substr(host, 9) ELSE '' END AS forge
  FROM parts
),
without_number AS (
  SELECT org_id, name, signer_id, host, forge,
    CASE WHEN forge <> '' AND account GLOB '[0-9]*+?*'
      AND substr(account, 1, instr(account, '+') - 1) NOT GLOB '*[^0-9]*' THEN substr(account, instr(account, '+') + 1)
    ELSE account END AS account
  FROM forges
),
without_id AS (
  SELECT org_id, name, signer_id, host, forge,
    CASE WHEN host LIKE 'users.noreply.%' AND forge NOT IN ('', 'github.com') AND account GLOB '[0-9]*-?*'
      AND substr(account, 1, instr(account, '-') - 1) NOT GLOB '*[^0-9]*' THEN substr(account, instr(account, '-') + 1)
    ELSE account END AS account
  FROM without_number
),
folded AS (
  SELECT org_id, name, signer_id, host,
    CASE forge WHEN 'github.com' THEN 'github' WHEN 'gitlab.com' THEN 'gitlab' WHEN 'codeberg.org' THEN 'codeberg'
      WHEN 'gitea.com' THEN 'gitea' WHEN 'bitbucket.org' THEN 'bitbucket' ELSE forge END AS forge,
    CASE WHEN instr(account, '+') > 1 THEN substr(account, 1, instr(account, '+') - 1) ELSE account END AS account
  FROM without_id
)
INSERT INTO signer_names (org_id, name, signer_id)
SELECT org_id, CASE forge WHEN '' THEN account || '@' || host ELSE forge || ':' || account END, signer_id
FROM folded WHERE true
ON CONFLICT (org_id, name, signer_id) DO NOTHING;
DELETE FROM signer_names
WHERE instr(name, '@') > 1 AND (instr(name, '+') > 1 AND instr(name, '+') < instr(name, '@')
  OR substr(name, instr(name, '@')) LIKE '@users.noreply._%' OR substr(name, instr(name, '@')) LIKE '@noreply._%');

-- Those who wrote commits may be other people now.
INSERT INTO rederivations (repo_id, cause_type, cause_id, done)
SELECT r.id, 'upgrade', '', 0 FROM repos r
WHERE r.deleted_at = 0 AND EXISTS (
  SELECT 1 FROM commits c WHERE c.repo_id = r.id AND (
    c.author_email LIKE '%+%@%' OR c.author_email LIKE '%noreply.%' OR c.writers LIKE '%+%@%'
    OR c.writers LIKE '%noreply.%' OR c.author_name LIKE '%+%@%' OR c.author_name LIKE '%noreply.%'
    OR c.author_name IN ('-', '?', '.'))
)
ON CONFLICT (repo_id) DO UPDATE SET done = 0;
