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
