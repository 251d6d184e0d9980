-- +goose Up
-- A row opens the deletion of a session's messages; a purge inserts and deletes it.
CREATE TABLE purging (
    session_id TEXT PRIMARY KEY,
    started_at TEXT NOT NULL,
    told       INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0, 1)) -- 1: the event session.purged is written
) STRICT;

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
