-- +goose Up
-- A session that is gone, or on its way: nothing shows it any more. Its row stays only while
-- messages are left, for the time of the deletion or as long as forks share them.
ALTER TABLE sessions ADD COLUMN purged_at TEXT;

-- What purged sessions had counted for in daily_usage, which keeps its numbers.
CREATE TABLE purged_days (
    day      TEXT NOT NULL,
    source   TEXT NOT NULL,
    sessions INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    prompts  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, source)
) STRICT, WITHOUT ROWID;

-- Sessions of other programs that were purged here, so that an import does not bring them back.
CREATE TABLE purged_sources (
    source    TEXT NOT NULL,
    id_hash   TEXT NOT NULL, -- lower-case hex sha-256 of the id in the source program
    purged_at TEXT NOT NULL,
    PRIMARY KEY (source, id_hash)
) STRICT, WITHOUT ROWID;

-- Since when the file may hold bytes of what was purged, outside of its tables; NULL: it does not.
ALTER TABLE store ADD COLUMN unscrubbed_at TEXT;

-- Events up to this one were removed for their age.
ALTER TABLE store ADD COLUMN events_removed_id INTEGER NOT NULL DEFAULT 0;
