-- The keys of signatures. Two people may share a DN, and a statement signed with
-- two keys is two attestations. The digest is the SHA-256 of the
-- SubjectPublicKeyInfo.
CREATE TABLE keys (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  digest BLOB    NOT NULL,
  UNIQUE (org_id, digest)
) STRICT;

-- The predicate types of statements, by URI.
CREATE TABLE predicate_types (
  id     INTEGER PRIMARY KEY,
  org_id INTEGER NOT NULL REFERENCES orgs,
  uri    TEXT    NOT NULL,
  UNIQUE (org_id, uri)
) STRICT;
INSERT INTO predicate_types (org_id, uri)
SELECT DISTINCT p.org_id, CASE a.own_type WHEN 1 THEN 'https://github.com/ledgerd/ledgerd/predicate/result/v1' ELSE p.name END
FROM attestations a JOIN predicates p ON p.id = a.predicate_id;

-- The DN normalised for comparing people: case and blanks are ignored.
ALTER TABLE signers ADD COLUMN folded TEXT NOT NULL DEFAULT '';
CREATE INDEX signers_by_fold ON signers (org_id, folded);

-- A base64 payload is stored decoded, separate from the rest of the envelope.
-- payload_at is the offset of its text in the envelope. Both are NULL if body is the
-- whole envelope.
ALTER TABLE envelopes ADD COLUMN payload BLOB;
ALTER TABLE envelopes ADD COLUMN payload_at INTEGER;

-- The attestations of a commit form a linked list, newest first: commits.newest is
-- its head, and attestations.previous is the next element. 0 ends the list.
ALTER TABLE commits ADD COLUMN newest INTEGER NOT NULL DEFAULT 0;

CREATE TABLE new_attestations (
  id               INTEGER PRIMARY KEY,
  previous         INTEGER NOT NULL,
  attestation_id   TEXT    NOT NULL,
  repo_id          INTEGER NOT NULL REFERENCES repos,
  commit_id        INTEGER NOT NULL REFERENCES commits,
  predicate_id     INTEGER NOT NULL REFERENCES predicates,
  type_id          INTEGER NOT NULL REFERENCES predicate_types,
  mapping_version  INTEGER NOT NULL, -- of the rules that mapped the statement
  slot             TEXT    NOT NULL, -- what it is about in addition to the commit; may be empty
  signer_id        INTEGER NOT NULL REFERENCES signers,
  key_id           INTEGER NOT NULL REFERENCES keys,
  status           TEXT    NOT NULL,
  duration_ms      INTEGER NOT NULL,
  recorded_at      INTEGER NOT NULL,
  payload_digest   BLOB    NOT NULL,
  identity_id      TEXT    NOT NULL, -- the key or root that made the signer trusted
  emails           TEXT    NOT NULL, -- of the signer, one per line
  while_promotable INTEGER NOT NULL, -- 1: recorded while the commit was PROMOTABLE or DEPLOYED
  event_id         TEXT    NOT NULL
) STRICT;
INSERT INTO new_attestations
SELECT a.id, 0, a.attestation_id, a.repo_id, a.commit_id, a.predicate_id, t.id, 1, '', a.signer_id, 0, a.status, a.duration_ms, a.recorded_at,
  a.payload_digest, a.identity_id, a.emails, a.while_promotable, a.event_id
FROM attestations a CROSS JOIN predicates p ON p.id = a.predicate_id CROSS JOIN predicate_types t ON t.org_id = p.org_id
  AND t.uri = CASE a.own_type WHEN 1 THEN 'https://github.com/ledgerd/ledgerd/predicate/result/v1' ELSE p.name END
ORDER BY a.id;
DROP TABLE attestations;
ALTER TABLE new_attestations RENAME TO attestations;

CREATE TABLE new_latest (
  commit_id      INTEGER NOT NULL REFERENCES commits,
  predicate_id   INTEGER NOT NULL REFERENCES predicates,
  slot           TEXT    NOT NULL,
  signer_id      INTEGER NOT NULL REFERENCES signers,
  attestation_id INTEGER NOT NULL REFERENCES attestations,
  PRIMARY KEY (commit_id, predicate_id, slot, signer_id)
) STRICT, WITHOUT ROWID;
INSERT INTO new_latest SELECT commit_id, predicate_id, '', signer_id, attestation_id FROM latest;
DROP TABLE latest;
ALTER TABLE new_latest RENAME TO latest;
