-- +goose Up
CREATE TABLE touched_files (
    path       TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    op         TEXT NOT NULL CHECK (op IN ('read', 'write', 'edit', 'delete')),
    session_id TEXT NOT NULL,
    PRIMARY KEY (message_id, path, op)
) STRICT, WITHOUT ROWID;

CREATE INDEX touched_files_path ON touched_files (path);

CREATE TABLE marks (
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('pin', 'label')),
    text       TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, message_id, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE states (
    session_id TEXT NOT NULL,
    name       TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    value      TEXT NOT NULL CHECK (json_valid(value)),
    updated_at TEXT NOT NULL,
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;

-- The outbox: written in the transaction of what it tells.
CREATE TABLE events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    type       TEXT NOT NULL,
    seq        INTEGER, -- of messages.appended: the last message's
    data       TEXT CHECK (data IS NULL OR json_valid(data)),
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE idempotency_keys (
    key_hash       TEXT NOT NULL PRIMARY KEY, -- of the key and the route
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
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE flushes (
    session_id    TEXT NOT NULL,
    compaction_id INTEGER NOT NULL DEFAULT 0, -- the overlay generation; 0 before the first
    at            TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    PRIMARY KEY (session_id, compaction_id)
) STRICT, WITHOUT ROWID;

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
