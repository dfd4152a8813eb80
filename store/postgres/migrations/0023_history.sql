-- Reviews carry by what commit objects say of the history.

-- A row is the object of a commit that is not registered: only its place in the history, and who wrote it, is known.
CREATE TABLE ancestors (
  repo_id     bigint           NOT NULL,
  sha         text COLLATE "C" NOT NULL,
  signing_key text COLLATE "C" NOT NULL,
  object      bytea            NOT NULL,
  PRIMARY KEY (repo_id, sha)
);

-- The commit from which on a review is about changes, as the statement says; '': it is about the commit alone.
ALTER TABLE attestations ADD COLUMN base text COLLATE "C" NOT NULL DEFAULT '';

-- The commit of the mainline that a claim names; 0: parent_state counts in its place.
ALTER TABLE merges ADD COLUMN parent_id bigint NOT NULL DEFAULT 0;
CREATE INDEX merges_by_parent ON merges (parent_id, commit_id) WHERE parent_id > 0;

-- A claim names two commits, and what the one of the mainline meets is kept.
ALTER TABLE merge_sources RENAME TO merge_sides;
ALTER TABLE merge_sides RENAME CONSTRAINT merge_sources_pkey TO merge_sides_pkey;
ALTER TABLE merge_sides ADD COLUMN met text COLLATE "C" NOT NULL DEFAULT '';

-- How often evidence of the org had been distrusted when the state was derived. It was the upper half of basis.
ALTER TABLE commits ADD COLUMN distrusts bigint NOT NULL DEFAULT 0;
UPDATE commits SET distrusts = basis >> 32, basis = basis & 4294967295 WHERE basis > 4294967295;

-- 1: an object was not known when the state was derived, and more evidence may carry with it.
ALTER TABLE commits ADD COLUMN gap bigint NOT NULL DEFAULT 0;
CREATE INDEX commits_with_gap ON commits (repo_id, id) WHERE gap = 1;
