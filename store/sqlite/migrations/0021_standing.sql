-- The standing of what runs is kept.

-- The standing of a commit in DEPLOYED that runs in an environment, or that a claim of a merge names
-- as the source; 4 of all others.
ALTER TABLE commits ADD COLUMN standing INTEGER NOT NULL DEFAULT 4;
CREATE INDEX deployments_by_commit ON deployments (commit_id) WHERE ended_id = 0;

-- It is derived in the background.
INSERT INTO rederivations (repo_id, cause_type, cause_id, done)
SELECT id, 'upgrade', '', 0 FROM repos WHERE deleted_at = 0
ON CONFLICT (repo_id) DO UPDATE SET done = 0;

-- The oldest version of ledgerd that has used a token, and when.
ALTER TABLE tokens ADD COLUMN client TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN client_at INTEGER NOT NULL DEFAULT 0;

-- The kind and the row id of the last resource of an org of which access and settings were logged, so that
-- 'ledgerd check' can compare them; '': all are. It is done in the background.
ALTER TABLE orgs ADD COLUMN unlogged_settings TEXT NOT NULL DEFAULT '';
UPDATE orgs SET unlogged_settings = 'repo:0';

-- What this server knew as a witness of other logs, which it no longer is.
DROP TABLE witnessed;
DROP TABLE witness_evidence;

-- At most one row: the time that an operator has accepted although newer records exist, or a later time,
-- and the newest stamp at this time; 0 if stamps are not ahead of the clock. Nothing notes any more what
-- expired: once a clock is accepted, all states are derived again.
ALTER TABLE clock RENAME TO former_clock;
CREATE TABLE clock (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  accepted_at INTEGER NOT NULL,
  stamp       INTEGER NOT NULL
) STRICT;
INSERT INTO clock (id, accepted_at, stamp) SELECT id, put_right_at, ahead_until FROM former_clock WHERE put_right_at > 0;
DROP TABLE former_clock;
DROP TABLE expirations;
