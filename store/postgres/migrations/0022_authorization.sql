-- Deliveries can have an Authorization header.

ALTER TABLE webhooks ADD COLUMN auth_header text COLLATE "C" NOT NULL DEFAULT '';
