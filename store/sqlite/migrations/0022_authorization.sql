-- Deliveries can have an Authorization header.

ALTER TABLE webhooks ADD COLUMN auth_header TEXT NOT NULL DEFAULT '';

-- A name that says what it has.
ALTER TABLE overlaps RENAME COLUMN told TO announced;
