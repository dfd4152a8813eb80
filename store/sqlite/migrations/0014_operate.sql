-- The events of administrative actions, with what lists of them are filtered by.
CREATE TABLE audits (
  org_id INTEGER NOT NULL REFERENCES orgs,
  seq    INTEGER NOT NULL,
  event  INTEGER NOT NULL REFERENCES events,
  kind   TEXT    NOT NULL, -- of resource, such as token
  action TEXT    NOT NULL, -- such as token.created
  repo   TEXT    NOT NULL, -- its name at that time, in lower case; empty if it has none
  actor  TEXT    NOT NULL, -- the ID of the token, or else the name
  PRIMARY KEY (org_id, seq)
) STRICT, WITHOUT ROWID;

-- When an org or a repo was archived, or deleted; 0: it was not. One that is deleted has a
-- name that no other can have, such as ~7, and its former name in former_names.
ALTER TABLE orgs ADD COLUMN archived_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orgs ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN archived_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX repos_deleted ON repos (org_id, id) WHERE deleted_at > 0;

-- Names that orgs and repos had. Events of the org with a seq below until_seq have the
-- name, unless they have an earlier one.
CREATE TABLE former_names (
  org_id    INTEGER NOT NULL REFERENCES orgs,
  repo_id   INTEGER NOT NULL, -- 0: the name of the org
  until_seq INTEGER NOT NULL,
  name      TEXT    NOT NULL COLLATE NOCASE,
  PRIMARY KEY (org_id, repo_id, until_seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_names_by_name ON former_names (org_id, name, until_seq);
