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
