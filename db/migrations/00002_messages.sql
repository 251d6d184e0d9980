-- +goose Up
CREATE TABLE messages (
    id          INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id < 1 << 52),
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    seq         INTEGER NOT NULL CHECK (seq > 0),
    parent_id   INTEGER CHECK (parent_id < id),
    jump        INTEGER NOT NULL DEFAULT 0 CHECK (jump IN (0, 1)), -- 1: the parent is not the message before it in this session
    depth       INTEGER NOT NULL,
    kind        TEXT NOT NULL DEFAULT 'message' CHECK (kind IN ('message', 'bash', 'custom_message', 'custom', 'branch_summary', 'marker', 'unknown')),
    role        TEXT NOT NULL DEFAULT '' CHECK (role IN ('system', 'user', 'assistant', 'tool', '')),
    origin      TEXT NOT NULL CHECK (origin IN ('person', 'model', 'tool', 'program')),
    finish      TEXT NOT NULL DEFAULT '' CHECK (finish IN ('', 'stop', 'tool_calls', 'length', 'error', 'aborted', 'refusal', 'paused')),
    author      TEXT NOT NULL DEFAULT '',
    tokens      INTEGER NOT NULL,
    path_tokens INTEGER NOT NULL,
    in_context  INTEGER NOT NULL DEFAULT 1 CHECK (in_context IN (0, 1)),
    display     INTEGER NOT NULL DEFAULT 1 CHECK (display IN (0, 1)),
    provider    TEXT NOT NULL DEFAULT '',
    model       TEXT NOT NULL DEFAULT '',
    dialect     TEXT NOT NULL DEFAULT '',
    external_id TEXT NOT NULL DEFAULT '',
    day         TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    metadata    TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    extra       TEXT CHECK (extra IS NULL OR json_valid(extra)),
    UNIQUE (session_id, seq)
) STRICT;

CREATE UNIQUE INDEX messages_external ON messages (session_id, external_id) WHERE external_id <> '';
CREATE INDEX messages_jumps ON messages (session_id, seq) WHERE jump = 1;
CREATE INDEX messages_person ON messages (day, session_id) WHERE origin = 'person';

-- Strings and bytes over 64 KiB, exactly as they came, once.
CREATE TABLE blobs (
    sha256     TEXT NOT NULL PRIMARY KEY, -- lower-case hex of data
    size       INTEGER NOT NULL,          -- bytes
    media_type TEXT NOT NULL,
    data       BLOB NOT NULL
) STRICT;

CREATE TABLE parts (
    id           INTEGER PRIMARY KEY, -- message_id << 10 | idx
    message_id   INTEGER NOT NULL,
    idx          INTEGER NOT NULL CHECK (idx BETWEEN 0 AND 1023),
    kind         TEXT NOT NULL CHECK (kind IN ('text', 'reasoning', 'tool_call', 'tool_result', 'image', 'audio', 'file', 'refusal', 'data')),
    text         TEXT NOT NULL DEFAULT '',
    tool_name    TEXT NOT NULL DEFAULT '',
    call_id      TEXT NOT NULL DEFAULT '',
    call_part_id INTEGER,
    arguments    TEXT NOT NULL DEFAULT '',
    is_error     INTEGER CHECK (is_error IN (0, 1)),
    duration_ms  INTEGER,
    blob         TEXT,
    tokens       INTEGER NOT NULL,
    extra        TEXT CHECK (extra IS NULL OR json_valid(extra)),
    CHECK (id = (message_id << 10 | idx))
) STRICT;

CREATE INDEX parts_tool ON parts (tool_name) WHERE kind = 'tool_call';
CREATE INDEX parts_call ON parts (call_part_id) WHERE call_part_id IS NOT NULL;
CREATE INDEX parts_blob ON parts (blob) WHERE blob IS NOT NULL;

-- A row here opens the deletion of one session's messages; a purge makes and removes it.
CREATE TABLE purging (
    session_id TEXT PRIMARY KEY,
    started_at TEXT NOT NULL
) STRICT;

-- What was said stays as it was said.
-- +goose StatementBegin
CREATE TRIGGER messages_immutable BEFORE UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: a message is immutable; append a new one, or compact');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages
WHEN NOT EXISTS (SELECT 1 FROM purging WHERE session_id = OLD.session_id)
BEGIN
    SELECT RAISE(ABORT, 'messages: only a purge deletes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER messages_no_replace BEFORE INSERT ON messages
WHEN EXISTS (SELECT 1 FROM messages WHERE id = NEW.id)
  OR EXISTS (SELECT 1 FROM messages WHERE session_id = NEW.session_id AND seq = NEW.seq)
  OR NEW.external_id <> '' AND EXISTS (SELECT 1 FROM messages WHERE session_id = NEW.session_id AND external_id = NEW.external_id AND external_id <> '')
BEGIN
    SELECT RAISE(ABORT, 'messages: this message exists; it is never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER parts_immutable BEFORE UPDATE ON parts
BEGIN
    SELECT RAISE(ABORT, 'parts: a part is immutable');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER parts_no_delete BEFORE DELETE ON parts
WHEN NOT EXISTS (SELECT 1 FROM messages m JOIN purging p ON p.session_id = m.session_id WHERE m.id = OLD.message_id)
BEGIN
    SELECT RAISE(ABORT, 'parts: only a purge deletes');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER parts_no_replace BEFORE INSERT ON parts
WHEN EXISTS (SELECT 1 FROM parts WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'parts: this part exists; it is never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_immutable BEFORE UPDATE ON blobs
BEGIN
    SELECT RAISE(ABORT, 'blobs: a blob is immutable');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_no_delete BEFORE DELETE ON blobs
WHEN EXISTS (SELECT 1 FROM parts WHERE blob = OLD.sha256)
BEGIN
    SELECT RAISE(ABORT, 'blobs: a part still holds this blob');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blobs_no_replace BEFORE INSERT ON blobs
WHEN EXISTS (SELECT 1 FROM blobs WHERE sha256 = NEW.sha256)
BEGIN
    SELECT RAISE(ABORT, 'blobs: this blob exists; it is never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions
WHEN EXISTS (SELECT 1 FROM messages WHERE session_id = OLD.id)
 AND NOT EXISTS (SELECT 1 FROM purging WHERE session_id = OLD.id)
BEGIN
    SELECT RAISE(ABORT, 'sessions: only a purge deletes');
END;
-- +goose StatementEnd
