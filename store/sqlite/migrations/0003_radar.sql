-- The commits that their branches registered last: the tips. flight tells how
-- a tip is: 1 in flight; out of flight, but not to be forgotten by those that
-- overlap with it, 2 deployed, 3 landed in the base of another; out of it and
-- done with, 4 superseded, 5 withdrawn, 6 forgotten.
CREATE TABLE tips (
  commit_id  INTEGER PRIMARY KEY REFERENCES commits,
  repo_id    INTEGER NOT NULL REFERENCES repos,
  sha        TEXT    NOT NULL,
  branch     TEXT    NOT NULL,
  flight     INTEGER NOT NULL,
  place      INTEGER NOT NULL, -- of two tips that with the greater place was registered later
  seq        INTEGER NOT NULL, -- grows whenever the radar looks at a tip of the repo
  opened_at  INTEGER NOT NULL, -- when it came into flight
  ended_at   INTEGER NOT NULL DEFAULT 0,
  policy_version INTEGER NOT NULL, -- of the contract whose radar looked at it last
  lineage    TEXT    NOT NULL, -- the commits that it is built on
  level      INTEGER NOT NULL DEFAULT 0, -- of its overlaps as the later one, the highest that there was
  truncated  INTEGER NOT NULL DEFAULT 0 -- 1: there were more overlaps than are kept
) STRICT;
CREATE INDEX tips_by_branch ON tips (repo_id, branch) WHERE flight < 4;
CREATE INDEX tips_by_seq ON tips (repo_id, seq);
CREATE INDEX tips_by_place ON tips (repo_id, place) WHERE flight = 1;
CREATE INDEX tips_by_age ON tips (repo_id, opened_at) WHERE flight < 4;
CREATE INDEX tips_done ON tips (repo_id) WHERE flight IN (4, 5);

-- What tips change, by path; a renamed file is there by both its names. These
-- tables are written in hundreds of rows at a time, by one function each: that
-- their ids are right is not checked again for every row.
CREATE TABLE tip_paths (
  repo_id   INTEGER NOT NULL,
  path      TEXT    NOT NULL,
  commit_id INTEGER NOT NULL,
  change    BLOB    NOT NULL, -- see appendChange
  PRIMARY KEY (repo_id, path, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tip_paths_by_commit ON tip_paths (commit_id);

-- The directories in which tips change files, each with a slash at its end.
CREATE TABLE tip_dirs (
  repo_id   INTEGER NOT NULL,
  dir       TEXT    NOT NULL,
  commit_id INTEGER NOT NULL,
  PRIMARY KEY (repo_id, dir, commit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tip_dirs_by_commit ON tip_dirs (commit_id);

-- Pairs of tips that overlap. A pair is open while the later one is in flight,
-- the earlier one's flight is not above 3, and both are young enough. There is
-- no index by the earlier one: 200 rows at 200 places of it would be most of
-- what a registration writes. Whoever asks looks among the later tips in flight.
CREATE TABLE overlaps (
  later   INTEGER NOT NULL,
  earlier INTEGER NOT NULL,
  level   INTEGER NOT NULL,
  told    INTEGER NOT NULL, -- the highest level that an event told of; 0: none
  since   INTEGER NOT NULL,
  path    TEXT    NOT NULL, -- the strongest, and why
  reason  TEXT    NOT NULL,
  PRIMARY KEY (later, earlier)
) STRICT, WITHOUT ROWID;
