-- +goose Up
-- Which files a tool call read or changed.
CREATE TABLE touched_files (
    path       TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    op         TEXT NOT NULL CHECK (op = 'read' OR op = 'write' OR op = 'edit' OR op = 'delete'),
    session_id TEXT NOT NULL,
    PRIMARY KEY (message_id, path, op)
) STRICT, WITHOUT ROWID;

CREATE INDEX touched_files_path ON touched_files (path);

-- Pins and labels of messages.
CREATE TABLE marks (
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('pin', 'label')),
    text       TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, message_id, kind)
) STRICT, WITHOUT ROWID;

-- Named documents of a session.
CREATE TABLE states (
    session_id TEXT NOT NULL,
    name       TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    value      TEXT NOT NULL CHECK (json_valid(value)),
    updated_at TEXT NOT NULL,
    deleted_at TEXT, -- a deleted document keeps its row, so that its revisions go on
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;

-- The outbox: an event is written in the transaction of what it tells.
CREATE TABLE events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    type       TEXT NOT NULL,
    seq        INTEGER, -- of messages.appended: the last message's
    data       TEXT CHECK (data IS NULL OR json_valid(data)),
    created_at TEXT NOT NULL
) STRICT;

-- The outcome of requests with an Idempotency-Key. Rows are in the order of arrival: keys are random,
-- and rows in their order would each go to a page of its own.
CREATE TABLE idempotency_keys (
    id             INTEGER PRIMARY KEY,
    key_hash       TEXT NOT NULL UNIQUE, -- of the key and the route
    body_hash      TEXT NOT NULL,
    route          TEXT NOT NULL,
    status         INTEGER NOT NULL,
    session_id     TEXT NOT NULL DEFAULT '',
    message_id     INTEGER, -- the first message of an append
    n              INTEGER NOT NULL DEFAULT 0,
    object_id      TEXT NOT NULL DEFAULT '',
    revision       INTEGER NOT NULL DEFAULT 0,
    head_id        INTEGER,
    compaction_id  INTEGER,
    context_id     INTEGER,
    context_tokens INTEGER NOT NULL DEFAULT 0,
    created_at     TEXT NOT NULL
) STRICT;

-- How far a source file was read.
CREATE TABLE imports (
    source      TEXT NOT NULL,
    path        TEXT NOT NULL,
    session_id  TEXT NOT NULL DEFAULT '',
    size        INTEGER NOT NULL DEFAULT 0, -- bytes, when it was last read
    modified_at TEXT,
    offset      INTEGER NOT NULL DEFAULT 0, -- bytes read for good
    hash        TEXT NOT NULL DEFAULT '',   -- lower-case hex sha-256 of the bytes before offset
    counts      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(counts)),
    state       TEXT CHECK (state IS NULL OR json_valid(state)), -- what the source's reader must remember
    updated_at  TEXT NOT NULL,
    PRIMARY KEY (source, path)
) STRICT, WITHOUT ROWID;
