-- Boundaries between orgs, and whose names count.

CREATE TABLE provider_orgs (
  issuer text COLLATE "C" NOT NULL, org_id bigint NOT NULL REFERENCES orgs,
  PRIMARY KEY (issuer, org_id)
);
INSERT INTO provider_orgs (issuer, org_id)
SELECT issuer, org_id FROM members WHERE removed_at = 0
UNION SELECT issuer, org_id FROM member_rules WHERE removed_at = 0;
