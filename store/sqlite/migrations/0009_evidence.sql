-- When the signer finished, by the statement; 0: not stated. For a repeated result, the
-- latest of these times.
ALTER TABLE attestations ADD COLUMN finished_at INTEGER NOT NULL DEFAULT 0;

-- Signers and keys of one person have the same number, which is the row id of one of the
-- signers. 0: not yet known to sign.
ALTER TABLE signers ADD COLUMN person INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN person INTEGER NOT NULL DEFAULT 0;
CREATE INDEX signers_by_person ON signers (org_id, person);
CREATE INDEX keys_by_person ON keys (org_id, person);

-- Repos whose commits are derived again because two people turned out to be one.
-- Commits with ids up to done are finished.
CREATE TABLE rederivations (
  repo_id    INTEGER PRIMARY KEY REFERENCES repos,
  cause_type TEXT    NOT NULL,
  cause_id   TEXT    NOT NULL,
  done       INTEGER NOT NULL
) STRICT;

-- At most one row: the progress of mapping statements by the rules of this release.
CREATE TABLE remapping (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL, -- of the rules
  below   INTEGER NOT NULL, -- attestations with row ids below this are still to be mapped
  total   INTEGER NOT NULL, -- the first value of below
  changed INTEGER NOT NULL  -- the number of attestations whose outcome has changed
) STRICT;
