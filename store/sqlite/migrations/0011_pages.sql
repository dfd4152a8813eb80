-- Where people see the repo in a browser, such as https://github.com/acme/api; empty if
-- it is not known. The kind of forge says how its links are formed.
ALTER TABLE repos ADD COLUMN web_url TEXT NOT NULL DEFAULT '';
ALTER TABLE repos ADD COLUMN forge TEXT NOT NULL DEFAULT '';
