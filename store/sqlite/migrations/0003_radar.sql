-- The tips: the last registered commits of branches. flight is 1 in flight,
-- 2 deployed, 3 landed (the base of another commit contains it), 4 superseded,
-- 5 withdrawn or 6 forgotten. Tips with 2 and 3 are out of flight, but still
-- matter to commits that overlap with them.
CREATE TABLE tips (
  commit_id  INTEGER PRIMARY KEY REFERENCES commits,
  repo_id    INTEGER NOT NULL REFERENCES repos,
  sha        TEXT    NOT NULL,
  branch     TEXT    NOT NULL,
  flight     INTEGER NOT NULL,
  place      INTEGER NOT NULL, -- of two tips, the one with the greater place was registered later
  seq        INTEGER NOT NULL, -- grows whenever the radar scans a tip of the repo
  opened_at  INTEGER NOT NULL, -- when it came into flight
  ended_at   INTEGER NOT NULL DEFAULT 0,
  policy_version INTEGER NOT NULL, -- the contract version of the last scan
  lineage    TEXT    NOT NULL, -- the commits it is built on
  level      INTEGER NOT NULL DEFAULT 0, -- the highest level of its overlaps with earlier tips so far
  truncated  INTEGER NOT NULL DEFAULT 0 -- 1: there were more overlaps than are stored
) STRICT;
CREATE INDEX tips_by_branch ON tips (repo_id, branch) WHERE flight < 4;
CREATE INDEX tips_by_seq ON tips (repo_id, seq);
CREATE INDEX tips_by_place ON tips (repo_id, place) WHERE flight = 1;
CREATE INDEX tips_by_age ON tips (repo_id, opened_at) WHERE flight < 4;
CREATE INDEX tips_done ON tips (repo_id) WHERE flight IN (4, 5);

-- What tips change, by path. A renamed file has a row for each of its two paths.
-- Each of these tables is written by one function, hundreds of rows at a time, so
-- it has no foreign keys.
CREATE TABLE tip_paths (
  repo_id   INTEGER NOT NULL,
  path      TEXT    NOT NULL,
  commit_id INTEGER NOT NULL,
  change    BLOB    NOT NULL, -- see appendChange
  PRIMARY KEY (repo_id, path, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tip_paths_by_commit ON tip_paths (commit_id);

-- The directories in which tips change files, with a trailing slash.
CREATE TABLE tip_dirs (
  repo_id   INTEGER NOT NULL,
  dir       TEXT    NOT NULL,
  commit_id INTEGER NOT NULL,
  PRIMARY KEY (repo_id, dir, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tip_dirs_by_commit ON tip_dirs (commit_id);

-- Pairs of tips that overlap. A pair is open while the later tip is in flight,
-- the flight of the earlier one is at most 3, and neither is too old. There is no
-- index by earlier: a registration would mostly write its 200 rows to 200 pages of
-- that index. Queries by earlier look among the later tips in flight.
CREATE TABLE overlaps (
  later   INTEGER NOT NULL,
  earlier INTEGER NOT NULL,
  level   INTEGER NOT NULL,
  told    INTEGER NOT NULL, -- the highest level reported by an event; 0: none
  since   INTEGER NOT NULL,
  path    TEXT    NOT NULL, -- the path with the strongest overlap, and the reason
  reason  TEXT    NOT NULL,
  PRIMARY KEY (later, earlier)
) STRICT, WITHOUT ROWID;
