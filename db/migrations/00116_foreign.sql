-- +goose Up
-- Whose word an imported session is: hooks tell an agent nothing of one that came from a path given by hand, unless the
-- user said that it is theirs.
ALTER TABLE sessions ADD COLUMN foreign_from TEXT NOT NULL DEFAULT ''; -- the file; '': it is the user's own
ALTER TABLE imports ADD COLUMN mine INTEGER CHECK (mine IN (0, 1)); -- NULL: nobody decided yet

CREATE INDEX sessions_foreign ON sessions (foreign_from) WHERE foreign_from <> '';
CREATE INDEX imports_undecided ON imports (source) WHERE mine IS NULL;
