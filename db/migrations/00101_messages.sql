-- +goose Up
-- A row is an entry of a session. It never changes.
CREATE TABLE messages (
    id          INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id < 1 << 52),
    session_id  TEXT NOT NULL REFERENCES sessions (id),
    seq         INTEGER NOT NULL CHECK (seq > 0),
    parent_id   INTEGER CHECK (parent_id < id),
    jump        INTEGER NOT NULL DEFAULT 0 CHECK (jump IN (0, 1)), -- 1: the parent is not the message before it in this session
    depth       INTEGER NOT NULL,
    kind        TEXT NOT NULL DEFAULT 'message' CHECK (kind = 'message' OR kind = 'bash' OR kind = 'custom_message' OR kind = 'custom' OR kind = 'branch_summary' OR kind = 'marker' OR kind = 'unknown'),
    role        TEXT NOT NULL DEFAULT '' CHECK (role = 'assistant' OR role = 'tool' OR role = 'user' OR role = '' OR role = 'system'),
    origin      TEXT NOT NULL CHECK (origin = 'model' OR origin = 'tool' OR origin = 'person' OR origin = 'program'),
    finish      TEXT NOT NULL DEFAULT '' CHECK (finish = '' OR finish = 'stop' OR finish = 'tool_calls' OR finish = 'length' OR finish = 'error' OR finish = 'aborted' OR finish = 'refusal' OR finish = 'paused'),
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

-- A row is a piece of a message.
CREATE TABLE parts (
    id           INTEGER PRIMARY KEY, -- message_id << 10 | idx
    message_id   INTEGER NOT NULL,
    idx          INTEGER NOT NULL CHECK (idx BETWEEN 0 AND 1023),
    kind         TEXT NOT NULL CHECK (kind = 'text' OR kind = 'tool_call' OR kind = 'tool_result' OR kind = 'reasoning' OR kind = 'data' OR kind = 'image' OR kind = 'audio' OR kind = 'file' OR kind = 'refusal'),
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

-- Texts and bytes over 64 KiB, exactly as they came, once. A row holds the first MiB, blob_pieces the
-- rest: SQLite and the driver hold a row several times over while it is written or read.
CREATE TABLE blobs (
    sha256     TEXT NOT NULL PRIMARY KEY, -- lower-case hex of data
    size       INTEGER NOT NULL,          -- bytes
    media_type TEXT NOT NULL,
    data       BLOB NOT NULL
) STRICT;

CREATE TABLE blob_pieces (
    sha256 TEXT NOT NULL,
    n      INTEGER NOT NULL CHECK (n > 0), -- blobs.data is piece 0
    data   BLOB NOT NULL,
    PRIMARY KEY (sha256, n)
) STRICT;

-- Nothing that was said changes.
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
CREATE TRIGGER blobs_with_pieces AFTER DELETE ON blobs
BEGIN
    DELETE FROM blob_pieces WHERE sha256 = OLD.sha256;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blob_pieces_in_order BEFORE INSERT ON blob_pieces
WHEN NEW.n <> 1 + (SELECT COUNT(*) FROM blob_pieces p WHERE p.sha256 = NEW.sha256)
  OR NOT EXISTS (SELECT 1 FROM blobs b WHERE b.sha256 = NEW.sha256 AND b.size >= LENGTH(b.data) + LENGTH(NEW.data)
        + (SELECT COALESCE(SUM(LENGTH(p.data)), 0) FROM blob_pieces p WHERE p.sha256 = NEW.sha256))
BEGIN
    SELECT RAISE(ABORT, 'blob_pieces: a piece is the next one of a blob that is not whole, and is never replaced');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blob_pieces_immutable BEFORE UPDATE ON blob_pieces
BEGIN
    SELECT RAISE(ABORT, 'blob_pieces: a blob is immutable');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER blob_pieces_no_delete BEFORE DELETE ON blob_pieces
WHEN EXISTS (SELECT 1 FROM blobs WHERE sha256 = OLD.sha256)
BEGIN
    SELECT RAISE(ABORT, 'blob_pieces: pieces go with their blob');
END;
-- +goose StatementEnd
