-- Rollbacks.

-- Why the commit was rolled back, or is deployed again; empty in other statements.
ALTER TABLE attestations ADD COLUMN reason TEXT NOT NULL DEFAULT '';
