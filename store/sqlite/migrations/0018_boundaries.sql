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
