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
