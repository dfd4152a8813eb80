-- Boundaries between orgs, and whose names count.

CREATE TABLE provider_orgs (
  issuer text COLLATE "C" NOT NULL, org_id bigint NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
);
INSERT INTO provider_orgs (issuer, org_id)
SELECT issuer, org_id FROM members WHERE removed_at = 0
UNION SELECT issuer, org_id FROM member_rules WHERE removed_at = 0;

CREATE INDEX commits_expiring_by_repo ON commits (repo_id, expires) WHERE expires > 0;

CREATE TABLE cursor_key (
  id bigint PRIMARY KEY CHECK (id = 1), key bytea NOT NULL
);
-- A random UUID has 122 random bits.
INSERT INTO cursor_key (id, key)
VALUES (1, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Of each signer, the first statement of a build that links an artifact, and the first other one:
-- by the rules 2 of contracts, only builds link artifacts.
ALTER TABLE artifacts ADD COLUMN is_build bigint NOT NULL DEFAULT 0;
ALTER TABLE artifacts DROP CONSTRAINT artifacts_pkey;
UPDATE artifacts SET is_build = 1 FROM attestations a JOIN predicates p ON p.id = a.predicate_id
  WHERE a.id = artifacts.attestation_id AND p.name >= 'build:' AND p.name < 'build;';
-- A build that was recorded after another statement about the same artifact, and is about no other.
INSERT INTO artifacts (org_id, digest, commit_id, identity_id, signer_id, is_build, attestation_id)
  SELECT l.org_id, l.digest, l.commit_id, l.identity_id, l.signer_id, 1, min(a.id)
  FROM artifacts l JOIN attestations a ON a.commit_id = l.commit_id AND a.signer_id = l.signer_id
    AND a.identity_id = l.identity_id AND a.slot = CASE length(l.digest) WHEN 32 THEN 'sha256:' WHEN 48 THEN 'sha384:'
      ELSE 'sha512:' END || encode(l.digest, 'hex')
  JOIN predicates p ON p.id = a.predicate_id AND p.name >= 'build:' AND p.name < 'build;'
  WHERE l.is_build = 0 GROUP BY l.org_id, l.digest, l.commit_id, l.identity_id, l.signer_id;
ALTER TABLE artifacts ALTER COLUMN is_build DROP DEFAULT;
ALTER TABLE artifacts ADD PRIMARY KEY (org_id, digest, commit_id, identity_id, signer_id, is_build);

-- All e-mail addresses of an identity's signer, if there are several, and the logins at forges,
-- one per line.
ALTER TABLE identities ADD COLUMN emails text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE identities ADD COLUMN logins text COLLATE "C" NOT NULL DEFAULT '';

-- E-mail addresses are compared without plus tags, and no-reply addresses of forges as logins, as
-- identity.FoldName does. The names of signers follow.
WITH
parts AS (
  SELECT org_id, name, signer_id, substr(name, 1, strpos(name, '@') - 1) AS account,
    substr(name, strpos(name, '@') + 1) AS host
  FROM signer_names WHERE strpos(name, '@') > 1
),
forges AS (
  SELECT *, CASE WHEN host LIKE 'users.noreply._%' THEN substr(host, 15) WHEN host LIKE 'noreply._%'
    THEN substr(host, 9) ELSE '' END AS forge
  FROM parts
),
without_number AS (
  SELECT org_id, name, signer_id, host, forge,
    CASE WHEN forge <> '' THEN regexp_replace(account, '^[0-9]+\+(.+)$', '\1') ELSE account END AS account
  FROM forges
),
without_id AS (
  SELECT org_id, name, signer_id, host, forge,
    CASE WHEN host LIKE 'users.noreply.%' AND forge NOT IN ('', 'github.com')
      THEN regexp_replace(account, '^[0-9]+-(.+)$', '\1') ELSE account END AS account
  FROM without_number
),
folded AS (
  SELECT org_id, name, signer_id, host,
    CASE forge WHEN 'github.com' THEN 'github' WHEN 'gitlab.com' THEN 'gitlab' WHEN 'codeberg.org' THEN 'codeberg'
      WHEN 'gitea.com' THEN 'gitea' WHEN 'bitbucket.org' THEN 'bitbucket' ELSE forge END AS forge,
    CASE WHEN strpos(account, '+') > 1 THEN substr(account, 1, strpos(account, '+') - 1) ELSE account END AS account
  FROM without_id
)
INSERT INTO signer_names (org_id, name, signer_id)
SELECT org_id, CASE forge WHEN '' THEN account || '@' || host ELSE forge || ':' || account END, signer_id
FROM folded
ON CONFLICT (org_id, name, signer_id) DO NOTHING;
DELETE FROM signer_names
WHERE strpos(name, '@') > 1 AND (strpos(name, '+') > 1 AND strpos(name, '+') < strpos(name, '@')
  OR substr(name, strpos(name, '@')) LIKE '@users.noreply._%' OR substr(name, strpos(name, '@')) LIKE '@noreply._%');

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
