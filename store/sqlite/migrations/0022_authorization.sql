-- Deliveries can have an Authorization header.

ALTER TABLE webhooks ADD COLUMN auth_header TEXT NOT NULL DEFAULT '';
