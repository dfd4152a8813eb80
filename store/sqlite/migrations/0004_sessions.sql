-- Sessions of the web interface. A session has the permissions of its token and
-- ends with it.
CREATE TABLE sessions (
  hash       BLOB    PRIMARY KEY, -- SHA-256 of the secret
  token_id   INTEGER NOT NULL REFERENCES tokens,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
