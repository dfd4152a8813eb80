-- What tips change stands in the records of the commits: the index that finds
-- them by path is made from these, in memory.
DROP TABLE tip_paths;
DROP TABLE tip_dirs;

-- From now on the seq of a tip grows whenever something of it changes that such
-- an index has to know, and its policy_version is 0 where the radar has yet to
-- look at it.
CREATE INDEX tips_unseen ON tips (repo_id, opened_at) WHERE policy_version = 0 AND flight = 1;
