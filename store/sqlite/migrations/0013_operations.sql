-- That the database was restored from a backup: the events of the org from a number on were
-- lost, unless they were recorded again.
CREATE TABLE restores (
  org_id   INTEGER NOT NULL REFERENCES orgs,
  at       INTEGER NOT NULL,
  next_seq INTEGER NOT NULL, -- of the org in the backup
  PRIMARY KEY (org_id, at)
) STRICT, WITHOUT ROWID;
