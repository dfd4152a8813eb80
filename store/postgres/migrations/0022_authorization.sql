-- Deliveries can have an Authorization header.

ALTER TABLE webhooks ADD COLUMN auth_header text COLLATE "C" NOT NULL DEFAULT '';

-- A name that says what it has.
ALTER TABLE "overlaps" RENAME COLUMN told TO announced;

-- Texts are compared byte by byte, as those of all other columns.
ALTER TABLE orgs ALTER COLUMN unlogged_settings TYPE text COLLATE "C";
ALTER TABLE tokens ALTER COLUMN client TYPE text COLLATE "C";
ALTER TABLE backlog
  ALTER COLUMN kind TYPE text COLLATE "C", ALTER COLUMN cause_type TYPE text COLLATE "C",
  ALTER COLUMN cause_id TYPE text COLLATE "C", ALTER COLUMN error TYPE text COLLATE "C",
  ALTER COLUMN holder TYPE text COLLATE "C";
