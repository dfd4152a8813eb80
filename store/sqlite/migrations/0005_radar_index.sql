-- The commits' change records contain what tips change. The index by path is now
-- built from them, in memory.
DROP TABLE tip_paths;
DROP TABLE tip_dirs;

-- From this version on, the seq of a tip grows whenever it changes in a way that
-- matters to this index, and policy_version is 0 if the radar must scan the tip.
CREATE INDEX tips_unseen ON tips (repo_id, opened_at) WHERE policy_version = 0 AND flight = 1;
