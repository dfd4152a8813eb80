-- The age of an attestation counts from aged_from if it is not 0, else from
-- recorded_at. They differ if recorded_at comes from a clock that was put right.
ALTER TABLE attestations ADD COLUMN aged_from INTEGER NOT NULL DEFAULT 0;

-- What changed in commits because of the time: evidence or an overlap expired. If
-- the clock turns out to have been ahead, these commits are derived again. Old rows
-- are pruned.
CREATE TABLE expirations (
  at         INTEGER NOT NULL,
  commit_id  INTEGER NOT NULL, -- without a foreign key, which would need an index
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  PRIMARY KEY (at, commit_id)
) STRICT, WITHOUT ROWID;

-- At most one row: what must be known of the clock across restarts.
CREATE TABLE clock (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  behind_since INTEGER NOT NULL, -- the wall clock when it was first seen far behind; 0: it is not
  put_right_at INTEGER NOT NULL, -- the time to which the clock was put back, or later; 0: stamps are not ahead
  ahead_until  INTEGER NOT NULL, -- the times in ids may be ahead of the clock up to here
  pending      INTEGER NOT NULL  -- 1: times later than put_right_at are still to be corrected
) STRICT;

-- The sessions of a token, the newest last.
CREATE INDEX sessions_by_token ON sessions (token_id, created_at);
-- Lists read these indexes in their order, and stop after a fixed number of rows.
CREATE INDEX repos_by_org ON repos (org_id);
CREATE INDEX predicates_by_org ON predicates (org_id);
CREATE INDEX commits_by_author_name ON commits (repo_id, author_name) WHERE author_name <> '';
CREATE INDEX commits_by_author_email ON commits (repo_id, author_email) WHERE author_email <> '';
CREATE INDEX tips_in_flight ON tips (repo_id, commit_id) WHERE flight = 1;
CREATE INDEX attestations_not_passed ON attestations (repo_id, status, recorded_at) WHERE status <> 'pass';
-- Most lists of events leave those of the radar out.
CREATE INDEX events_by_repo ON events (repo_id, seq) WHERE type <> 'radar';
CREATE INDEX events_of_radar ON events (org_id, seq) WHERE type = 'radar';
