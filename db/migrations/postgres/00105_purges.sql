-- +goose Up
-- A row opens the deletion of a session's messages; a purge inserts and deletes it.
CREATE TABLE purging (
    session_id text PRIMARY KEY,
    started_at timestamptz NOT NULL,
    told       bigint NOT NULL DEFAULT 0 CHECK (told IN (0, 1)) -- 1: the event session.purged is written
);

-- What purged sessions had counted for in daily_usage, which keeps its numbers.
CREATE TABLE purged_days (
    day      text NOT NULL,
    source   text NOT NULL,
    sessions bigint NOT NULL DEFAULT 0,
    messages bigint NOT NULL DEFAULT 0,
    prompts  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, source)
);

-- Sessions of other programs that were purged here, so that an import does not bring them back.
CREATE TABLE purged_sources (
    source    text NOT NULL,
    id_hash   text NOT NULL, -- lower-case hex sha-256 of the id in the source program
    purged_at timestamptz NOT NULL,
    PRIMARY KEY (source, id_hash)
);
