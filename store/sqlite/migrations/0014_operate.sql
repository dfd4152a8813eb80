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
