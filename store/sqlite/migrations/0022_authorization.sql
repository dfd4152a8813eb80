-- Deliveries can have a header Authorization.

ALTER TABLE webhooks ADD COLUMN auth_header TEXT NOT NULL DEFAULT '';
