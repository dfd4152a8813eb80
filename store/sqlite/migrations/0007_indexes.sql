CREATE INDEX attestations_by_time ON attestations (repo_id, recorded_at);
CREATE INDEX attestations_by_predicate ON attestations (repo_id, predicate_id, recorded_at);
CREATE INDEX attestations_by_signer ON attestations (repo_id, signer_id, recorded_at);
-- A statement names its commit, so an index that is unique per commit is unique
-- overall. New rows go to pages in use, and the rows of a commit are adjacent.
CREATE UNIQUE INDEX attestations_by_commit ON attestations (commit_id, payload_digest, signer_id, key_id);

UPDATE attestations SET previous = c.previous
FROM (SELECT id, lag(id, 1, 0) OVER (PARTITION BY commit_id ORDER BY id) AS previous FROM attestations) c WHERE c.id = attestations.id;
UPDATE commits SET newest = coalesce((SELECT max(id) FROM attestations WHERE commit_id = commits.id), 0);

-- An event is looked up by the time in its id.
CREATE TABLE new_events (
  id       INTEGER PRIMARY KEY,
  org_id   INTEGER NOT NULL REFERENCES orgs,
  seq      INTEGER NOT NULL, -- from 0 in each org, without gaps
  event_id TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  repo_id  INTEGER NOT NULL REFERENCES repos,
  at       INTEGER NOT NULL,
  body     BLOB    NOT NULL,
  UNIQUE (org_id, seq)
) STRICT;
INSERT INTO new_events SELECT id, org_id, seq, event_id, type, repo_id, at, body FROM events ORDER BY id;
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;
CREATE INDEX events_by_time ON events (org_id, at);

-- Commits pushed while the radar was off or ignored other paths were not always
-- scanned later, so the radar scans all commits in flight once more.
UPDATE tips SET policy_version = 0 WHERE flight = 1;
