-- Deliveries can have a header Authorization.

ALTER TABLE webhooks ADD COLUMN auth_header text COLLATE "C" NOT NULL DEFAULT '';
