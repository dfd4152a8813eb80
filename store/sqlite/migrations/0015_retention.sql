-- How long a repo keeps envelopes, bodies of events and deliveries, in milliseconds; 0: without
-- a limit, or, for deliveries, as the server is configured.
ALTER TABLE repos ADD COLUMN keep_envelopes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN keep_events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN keep_deliveries INTEGER NOT NULL DEFAULT 0;
-- When a deleted org or repo was purged, so that nothing is kept that can be pruned; 0: it was not.
ALTER TABLE orgs ADD COLUMN purged_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN purged_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX repos_pruned ON repos (id) WHERE keep_envelopes + keep_events + purged_at > 0;

-- How far repos are pruned: the attestation whose envelope was pruned last, and the sequence numbers
-- of the events that were examined last, those of the radar and others. An envelope that was pruned
-- has the payload_at -1, and as its body the SHA-256 of what was there; an event that was pruned
-- has neither body nor salt.
CREATE TABLE prunings (
  repo_id      INTEGER PRIMARY KEY REFERENCES repos,
  envelopes_at INTEGER NOT NULL DEFAULT -1, -- when the attestation was recorded
  envelope     INTEGER NOT NULL DEFAULT 0,  -- the row of the attestation
  events_seq   INTEGER NOT NULL DEFAULT -1,
  radar_seq    INTEGER NOT NULL DEFAULT -1
) STRICT;
