-- Where people see the repo in a browser, such as https://github.com/acme/api; empty if
-- it is not known. The kind of forge says how its links are formed.
ALTER TABLE repos ADD COLUMN web_url TEXT NOT NULL DEFAULT '';
ALTER TABLE repos ADD COLUMN forge TEXT NOT NULL DEFAULT '';

-- Since when a fail or error blocks a requirement; 0: none does.
ALTER TABLE commits ADD COLUMN failing_since INTEGER NOT NULL DEFAULT 0;
CREATE INDEX commits_failing ON commits (repo_id, id) WHERE failing_since > 0;
-- Existing commits are derived again in the background, from the first with a fail or error
-- within 30 days.
INSERT INTO rederivations (repo_id, cause_type, cause_id, done)
SELECT repo_id, 'upgrade', '', first - 1 FROM (
  SELECT r.id AS repo_id, (SELECT min(a.commit_id) FROM attestations a
    WHERE a.repo_id = r.id AND a.status IN ('fail', 'error') AND a.status <> 'pass'
      AND a.recorded_at > unixepoch() * 1000 - 2592000000) AS first
  FROM repos r)
WHERE first IS NOT NULL
ON CONFLICT (repo_id) DO UPDATE SET done = CASE WHEN done < excluded.done THEN done ELSE excluded.done END;

-- What needs attention is read from these indexes, and from commits_failing.
CREATE INDEX tips_conflicting ON tips (repo_id, commit_id) WHERE flight = 1 AND level = 3;
CREATE INDEX webhooks_troubled ON webhooks (repo_id, id) WHERE deleted_at = 0 AND (active = 0 OR failing_since > 0);
CREATE INDEX identities_expiring ON identities (org_id, not_after) WHERE revoked_at = 0 AND not_after > 0;
CREATE INDEX tokens_expiring ON tokens (org_id, expires_at) WHERE revoked_at = 0 AND expires_at > 0;
