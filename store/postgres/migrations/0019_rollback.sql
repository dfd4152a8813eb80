-- Rollbacks.

ALTER TABLE attestations ADD COLUMN reason text COLLATE "C" NOT NULL DEFAULT '';
