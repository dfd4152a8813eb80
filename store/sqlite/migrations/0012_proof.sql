-- An event's leaf in the log of its org: SHA-256 of the leaf's tag, a salt of 16 random
-- bytes and the body. Both are NULL until the log has been built up to the event; a
-- pruned body has no salt.
ALTER TABLE events ADD COLUMN salt BLOB;
ALTER TABLE events ADD COLUMN leaf BLOB;

-- The events of an org, such as those of its identities, have no repo. SQLite documents
-- this way to drop a constraint (lang_altertable.html, section 7): no row changes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'repo_id  INTEGER NOT NULL REFERENCES repos', 'repo_id  INTEGER REFERENCES repos')
WHERE type = 'table' AND name = 'events';
PRAGMA writable_schema = RESET;

-- The latest event about an identity. It is empty until the first.
ALTER TABLE identities ADD COLUMN event_id TEXT NOT NULL DEFAULT '';
CREATE INDEX identities_to_log ON identities (id) WHERE event_id = '';

CREATE INDEX events_of_org ON events (org_id, seq) WHERE repo_id IS NULL;

-- The transparency logs of the orgs, one per epoch. Leaf n is the event with the seq
-- first_seq + n.
CREATE TABLE logs (
  id         INTEGER PRIMARY KEY,
  org_id     INTEGER NOT NULL REFERENCES orgs,
  epoch      INTEGER NOT NULL, -- from 1
  first_seq  INTEGER NOT NULL,
  origin     TEXT    NOT NULL DEFAULT '', -- fixed by the first checkpoint
  vkey       TEXT    NOT NULL DEFAULT '', -- the key of the log, as a verifier key of a signed note
  size       INTEGER NOT NULL DEFAULT 0,  -- of the newest checkpoint
  checkpoint TEXT    NOT NULL DEFAULT '', -- the newest checkpoint with its cosignatures
  signed_at  INTEGER NOT NULL DEFAULT 0,
  UNIQUE (org_id, epoch)
) STRICT;

-- Tiles of 256 hashes (C2SP tlog-tiles). Those of level 0 are written when they are full,
-- those above grow.
CREATE TABLE tiles (
  log_id INTEGER NOT NULL REFERENCES logs,
  level  INTEGER NOT NULL,
  n      INTEGER NOT NULL,
  hashes BLOB    NOT NULL,
  PRIMARY KEY (log_id, level, n)
) STRICT, WITHOUT ROWID;

-- The org's present log. While it is being built (log_built >= 0), only the builder writes
-- its tiles; log_built is the number of leaves that are done.
ALTER TABLE orgs ADD COLUMN log_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orgs ADD COLUMN log_first INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orgs ADD COLUMN log_built INTEGER NOT NULL DEFAULT -1;
ALTER TABLE orgs ADD COLUMN log_public INTEGER NOT NULL DEFAULT 0;

INSERT INTO logs (org_id, epoch, first_seq) SELECT id, 1, 0 FROM orgs;
UPDATE orgs SET log_id = (SELECT id FROM logs WHERE org_id = orgs.id),
  log_built = CASE WHEN next_seq > 0 THEN 0 ELSE -1 END;

-- The latest checkpoint of each log that this server cosigned as a witness. seq counts
-- them, and digest is a chain over them: the file next to the witness's key has the last
-- one, which shows whether a database is older than what was cosigned.
CREATE TABLE witnessed (
  origin     TEXT    NOT NULL PRIMARY KEY,
  size       INTEGER NOT NULL,
  root       BLOB    NOT NULL,
  checkpoint TEXT    NOT NULL, -- with the signatures of the log and of the witness
  seq        INTEGER NOT NULL UNIQUE,
  digest     BLOB    NOT NULL,
  previous   BLOB    NOT NULL, -- the digest before
  at         INTEGER NOT NULL
) STRICT;

-- Checkpoints that their log has signed, but that are not consistent with what was cosigned.
CREATE TABLE witness_evidence (
  id         INTEGER PRIMARY KEY,
  origin     TEXT    NOT NULL,
  kind       TEXT    NOT NULL, -- fork or unproved
  size       INTEGER NOT NULL,
  root       BLOB    NOT NULL,
  checkpoint TEXT    NOT NULL, -- as it was submitted
  cosigned   TEXT    NOT NULL, -- the checkpoint that was cosigned at that time
  at         INTEGER NOT NULL,
  UNIQUE (origin, kind, size, root)
) STRICT;

-- The keys of receipts that a log announces. Their private halves are never in the
-- database.
CREATE TABLE receipt_keys (
  log_id     INTEGER NOT NULL REFERENCES logs,
  not_after  INTEGER NOT NULL,
  key        TEXT    NOT NULL, -- hex SHA-256 of public_key
  not_before INTEGER NOT NULL,
  public_key BLOB    NOT NULL, -- DER SubjectPublicKeyInfo
  event_id   TEXT    NOT NULL, -- the event that announces it
  PRIMARY KEY (log_id, not_after, key)
) STRICT, WITHOUT ROWID;

-- The event of a version of a contract: 0 for the first one of a repo, which has none, and
-- for those from before an upgrade.
ALTER TABLE policies ADD COLUMN event INTEGER NOT NULL DEFAULT 0;

-- The SHA-256 of what is known of the commit, as its last event of the type commit has it.
-- It is empty if there is none. What was known before is logged in the background.
ALTER TABLE commits ADD COLUMN facts BLOB NOT NULL DEFAULT x'';
CREATE TABLE unlogged_commits (
  done INTEGER NOT NULL, -- the row id of the last commit that was logged
  last INTEGER NOT NULL
) STRICT;
INSERT INTO unlogged_commits (done, last) SELECT 0, max(id) FROM commits HAVING count(*) > 0;
