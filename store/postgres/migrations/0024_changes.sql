-- Signed statements say which paths commits change.

-- A row is a change record: the paths in which its commit differs from its base.
CREATE TABLE change_records (
  attestation_id bigint PRIMARY KEY,
  paths          bytea  NOT NULL
);
