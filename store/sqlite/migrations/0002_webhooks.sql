-- The event types that any active webhook of the repo subscribes to, as the sum of
-- their numbers in webhooks.events. Other events cost nothing.
ALTER TABLE repos ADD COLUMN webhook_events INTEGER NOT NULL DEFAULT 0;

CREATE TABLE webhooks (
  id              INTEGER PRIMARY KEY,
  webhook_id      TEXT    NOT NULL UNIQUE,
  repo_id         INTEGER NOT NULL REFERENCES repos,
  url             TEXT    NOT NULL,
  events          INTEGER NOT NULL, -- attestation 1 + state 2 + policy 4 + radar 8
  description     TEXT    NOT NULL,
  active          INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  changed_at      INTEGER NOT NULL,           -- when url or active last changed
  disabled_at     INTEGER NOT NULL DEFAULT 0,
  disabled_reason TEXT    NOT NULL DEFAULT '',
  failing_since   INTEGER NOT NULL DEFAULT 0, -- the first failure since the last success
  failures        INTEGER NOT NULL DEFAULT 0, -- the number of failures since failing_since
  secret          TEXT    NOT NULL,
  previous_secret TEXT    NOT NULL DEFAULT '',
  previous_until  INTEGER NOT NULL DEFAULT 0,
  deleted_at      INTEGER NOT NULL DEFAULT 0  -- its rows are deleted in the background, then the webhook
) STRICT;
CREATE INDEX webhooks_by_repo ON webhooks (repo_id, id) WHERE deleted_at = 0;
CREATE INDEX webhooks_active ON webhooks (id) WHERE active = 1;
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at > 0;

-- All deliveries of events to webhooks, each written in the event's own
-- transaction. While a delivery is pending, due_at is the time of its next
-- attempt. A dispatcher leases it by moving due_at past the end of the attempt.
-- Pings, redeliveries and released leases have due_at 1 and go first. When a
-- delivery is finished, due_at is 0. The row remains in the delivery log for some
-- time after ended_at.
CREATE TABLE outbox (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  event       INTEGER REFERENCES events, -- NULL: a ping
  ping        TEXT,                      -- the body of a ping, which is not an event of the ledger
  status      TEXT    NOT NULL,
  due_at      INTEGER NOT NULL,
  leased      INTEGER NOT NULL DEFAULT 0, -- 1 while a dispatcher attempts it
  attempts    INTEGER NOT NULL DEFAULT 0,
  tries       INTEGER NOT NULL DEFAULT 0, -- attempts since it was queued or redelivered
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL DEFAULT 0, -- 0 while pending
  PRIMARY KEY (webhook_id, delivery_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX outbox_by_event ON outbox (webhook_id, event);
CREATE INDEX outbox_due ON outbox (webhook_id, due_at) WHERE due_at > 0;
CREATE INDEX outbox_ended ON outbox (webhook_id, ended_at) WHERE ended_at > 0;
CREATE INDEX outbox_failed ON outbox (webhook_id, delivery_id) WHERE status = 'failed';

CREATE TABLE attempts (
  webhook_id  INTEGER NOT NULL REFERENCES webhooks,
  delivery_id TEXT    NOT NULL,
  number      INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  status      INTEGER NOT NULL, -- the HTTP status of the response; 0 if there was no response
  error       TEXT    NOT NULL,
  request     BLOB    NOT NULL, -- JSON
  response    BLOB    NOT NULL, -- JSON
  PRIMARY KEY (webhook_id, delivery_id, number)
) STRICT, WITHOUT ROWID;
