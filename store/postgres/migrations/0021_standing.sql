-- The standing of what runs is kept.

-- The standing of a commit in DEPLOYED that runs in an environment, or that a claim of a merge names
-- as the source; 4 of all others.
ALTER TABLE commits ADD COLUMN standing bigint NOT NULL DEFAULT 4;
CREATE INDEX deployments_by_commit ON deployments (commit_id) WHERE ended_id = 0;

-- What is done later, in the background. A row that stays, such as that of the evidence of a repo which expires,
-- has the time of its next turn.
CREATE TABLE backlog (
  repo_id    bigint NOT NULL REFERENCES repos,
  kind       text   NOT NULL,
  ref        bigint NOT NULL, -- the row id of what it is about: of a commit, say; 0: of the repo as a whole
  org_id     bigint NOT NULL REFERENCES orgs,
  cause_type text   NOT NULL,
  cause_id   text   NOT NULL,
  position   bigint NOT NULL, -- the row id up to which it is done
  again      bigint NOT NULL DEFAULT 0, -- 1: it begins again at its end
  since      bigint NOT NULL, -- when it was asked for
  not_before bigint NOT NULL,
  tries      bigint NOT NULL DEFAULT 0, -- that have failed in a row
  error      text   NOT NULL DEFAULT '', -- of the last of them
  holder     text   NOT NULL DEFAULT '', -- the server that works on it
  held_until bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (repo_id, kind, ref)
);
CREATE INDEX backlog_by_time ON backlog (org_id, kind, not_before);

-- What was to be done is done, in the new order. The standings are derived.
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT id, 'settle', 0, org_id, 'upgrade', '', 0, 0, 0 FROM repos WHERE deleted_at = 0;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT c.repo_id, 'expire', 0, r.org_id, '', '', 0, min(c.expires), min(c.expires)
FROM commits c JOIN repos r ON r.id = c.repo_id WHERE c.expires > 0 GROUP BY c.repo_id, r.org_id;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT c.repo_id, 'tree', i.tree_id, r.org_id, i.cause_type, i.cause_id, 0, 0, 0
FROM inheritances i JOIN commits c ON c.id = (SELECT min(id) FROM commits WHERE tree_id = i.tree_id AND tree_id > 0)
JOIN repos r ON r.id = c.repo_id WHERE i.tree_id > 0;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT c.repo_id, 'merges', i.source_id, r.org_id, i.cause_type, i.cause_id, 0, 0, 0
FROM inheritances i JOIN commits c ON c.id = i.source_id JOIN repos r ON r.id = c.repo_id WHERE i.source_id > 0;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT c.repo_id, CASE c.commit_id WHEN 0 THEN 'close' ELSE 'excuse' END, c.up_to, r.org_id, c.closed_how, c.closed_by,
  0, c.closed_at, 0
FROM closings c JOIN repos r ON r.id = c.repo_id WHERE c.id > 0 ORDER BY c.id
ON CONFLICT (repo_id, kind, ref) DO NOTHING;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'distrust', i.id, r.org_id, 'identity', d.identity_id,
  CASE WHEN r.id = d.repo_id THEN d.attestation_id ELSE 0 END, 0, 0
FROM distrusts d JOIN identities i ON i.identity_id = d.identity_id JOIN repos r ON r.org_id = d.org_id
WHERE r.id >= d.repo_id;

-- By which rules the statements of a repo are mapped, or are being mapped, and up to which row id earlier ones
-- mapped them when that began.
ALTER TABLE repos ADD COLUMN mapping_version bigint NOT NULL DEFAULT 0;
ALTER TABLE repos ADD COLUMN remapped_to bigint NOT NULL DEFAULT 0;
UPDATE repos SET mapping_version = coalesce((SELECT version FROM remapping), 0),
  remapped_to = coalesce((SELECT total - 1 FROM remapping WHERE total > 0), 0);
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'map', 0, r.org_id, 'upgrade', '', 0, 0, 0 FROM remapping m CROSS JOIN repos r WHERE m.below > 0;

INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'log', 0, r.org_id, 'upgrade', '', u.done, 0, 0 FROM unlogged_commits u CROSS JOIN repos r;

-- What is pruned of a repo (ref): 1, its envelopes up to an attestation; 2, the bodies of its events before a
-- sequence number; 3, those of the events of the radar.
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'prune', 1, r.org_id, '', '', coalesce(p.envelope, 0), 0, 0
FROM repos r LEFT JOIN prunings p ON p.repo_id = r.id WHERE r.keep_envelopes + r.keep_events + r.purged_at > 0;
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'prune', 2, r.org_id, '', '', coalesce(p.events_seq + 1, 0), 0, 0
FROM repos r LEFT JOIN prunings p ON p.repo_id = r.id WHERE r.keep_envelopes + r.keep_events + r.purged_at > 0;
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT r.id, 'prune', 3, r.org_id, '', '', coalesce(p.radar_seq + 1, 0), 0, 0
FROM repos r LEFT JOIN prunings p ON p.repo_id = r.id WHERE r.keep_envelopes + r.keep_events + r.purged_at > 0;

UPDATE backlog SET since = (SELECT coalesce(max(at), 0) FROM events e WHERE e.org_id = backlog.org_id) WHERE since = 0;

-- Of an org without repos, nothing is left to do.
UPDATE orgs SET distrusting = 0 WHERE NOT EXISTS (
  SELECT 1 FROM backlog b WHERE b.org_id = orgs.id AND b.kind = 'distrust');

DROP TABLE remapping;
DROP TABLE reevaluations;
DROP TABLE rederivations;
DROP TABLE inheritances;
DROP TABLE closings;
DROP TABLE distrusts;
DROP TABLE unlogged_commits;
DROP TABLE prunings;
DROP INDEX commits_expiring;
DROP INDEX repos_pruned;

-- The oldest version of ledgerd that has used a token, and when.
ALTER TABLE tokens ADD COLUMN client text NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN client_at bigint NOT NULL DEFAULT 0;

-- The kind and the row id of the last resource of an org of which access and settings were logged, so that
-- 'ledgerd check' can compare them; '': all are. It is done in the background.
ALTER TABLE orgs ADD COLUMN unlogged_settings text NOT NULL DEFAULT '';
UPDATE orgs SET unlogged_settings = 'repo:0';

-- What this server knew as a witness of other logs, which it no longer is.
DROP TABLE witnessed;
DROP TABLE witness_evidence;

-- At most one row: the time that an operator has accepted although newer records exist, or a later time,
-- and the newest stamp at this time; 0 if stamps are not ahead of the clock. Nothing notes any more what
-- expired: once a clock is accepted, all states are derived again.
ALTER TABLE clock RENAME TO former_clock;
CREATE TABLE clock (
  id          bigint PRIMARY KEY CHECK (id = 1),
  accepted_at bigint NOT NULL,
  stamp       bigint NOT NULL
);
INSERT INTO clock (id, accepted_at, stamp) SELECT id, put_right_at, ahead_until FROM former_clock WHERE put_right_at > 0;
DROP TABLE former_clock;
DROP TABLE expirations;
