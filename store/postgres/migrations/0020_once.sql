-- People with a common name count once.

-- Signers of one individual have the same number, which is that of one of their people.
ALTER TABLE signers ADD COLUMN individual bigint NOT NULL DEFAULT 0;
UPDATE signers SET individual = person;

-- Why a signer is somebody else than all others with the same names: 1: an administrator says so;
-- 2: they counted as two people before this version; 3: the same, and it is not logged yet.
ALTER TABLE signers ADD COLUMN distinct_by bigint NOT NULL DEFAULT 0;
UPDATE signers SET distinct_by = 3 WHERE person > 0 AND id IN (
  SELECT signer_id FROM signer_names WHERE (org_id, name) IN (
    SELECT n.org_id, n.name FROM signer_names n JOIN signers s ON s.id = n.signer_id
    WHERE s.person > 0 GROUP BY n.org_id, n.name HAVING min(s.person) < max(s.person)));
CREATE INDEX signers_to_log ON signers (id) WHERE distinct_by = 3;
CREATE INDEX signers_distinct ON signers (org_id) WHERE distinct_by > 1;

-- Carried evidence does not age any more, so commits may have other states.
INSERT INTO rederivations (repo_id, cause_type, cause_id, done)
SELECT id, 'upgrade', '', 0 FROM repos WHERE deleted_at = 0
ON CONFLICT (repo_id) DO UPDATE SET done = 0;
