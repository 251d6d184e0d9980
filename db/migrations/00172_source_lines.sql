-- +goose Up
-- Transcripts that a program's SDK sends line by line, instead of writing them to a file of this host.
CREATE TABLE source_transcripts (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    path      TEXT NOT NULL UNIQUE,            -- in imports, and in messages to people
    owner     TEXT NOT NULL DEFAULT '',
    source    TEXT NOT NULL,
    project   TEXT NOT NULL,
    session   TEXT NOT NULL,
    subpath   TEXT NOT NULL DEFAULT '',
    lines     INTEGER NOT NULL DEFAULT 0,
    bytes     INTEGER NOT NULL DEFAULT 0,      -- of the lines with their line feeds
    state     TEXT CHECK (state IS NULL OR json_valid(state)),
    stored_at TEXT NOT NULL
) STRICT;

CREATE INDEX source_transcripts_session ON source_transcripts (source, owner, project, session, subpath);

CREATE TABLE source_lines (
    transcript_id INTEGER NOT NULL,
    n             INTEGER NOT NULL,            -- from 1, without gaps
    uuid          TEXT NOT NULL DEFAULT '',
    line          TEXT NOT NULL,
    PRIMARY KEY (transcript_id, n)
) STRICT;

CREATE UNIQUE INDEX source_lines_uuid ON source_lines (transcript_id, uuid) WHERE uuid <> '';

-- The sessions that were imported from a transcript: a purge of one deletes the lines.
CREATE TABLE source_sessions (
    session_id    TEXT NOT NULL,
    transcript_id INTEGER NOT NULL,
    PRIMARY KEY (session_id, transcript_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX source_sessions_transcript ON source_sessions (transcript_id);
