-- +goose Up
-- A value of 50 MB is held three times over while its row is written or read. So a row of blobs
-- holds the first piece only, and what is beyond it lies in rows of its own. Blobs of earlier
-- versions are one piece, of whatever size; size > LENGTH(data) says that a blob goes on.
CREATE TABLE blob_pieces (
    sha256 TEXT NOT NULL,
    n      INTEGER NOT NULL CHECK (n > 0), -- blobs.data is piece 0
    data   BLOB NOT NULL,
    PRIMARY KEY (sha256, n)
) STRICT;

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
-- +goose StatementBegin
CREATE TRIGGER blobs_with_pieces AFTER DELETE ON blobs
BEGIN
    DELETE FROM blob_pieces WHERE sha256 = OLD.sha256;
END;
-- +goose StatementEnd

-- Large texts in one piece, for people.
CREATE VIEW blob_texts AS
SELECT b.sha256, b.size, b.media_type,
       CAST(b.data AS TEXT) || COALESCE((SELECT GROUP_CONCAT(t, '') FROM (
            SELECT CAST(p.data AS TEXT) AS t FROM blob_pieces p WHERE p.sha256 = b.sha256 ORDER BY p.n)), '') AS text
FROM blobs b
WHERE b.media_type LIKE 'text/plain%';

DROP VIEW messages_flat;
CREATE VIEW messages_flat AS
SELECT m.id, m.session_id, m.role,
       (SELECT GROUP_CONCAT(t, char(10)) FROM (
            SELECT CASE WHEN p.blob IS NULL THEN p.text
                        ELSE (SELECT b.text FROM blob_texts b WHERE b.sha256 = p.blob) END AS t
            FROM parts p
            WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
              AND p.kind IN ('text', 'refusal', 'tool_result')
            ORDER BY p.id)) AS content,
       (SELECT json_group_array(json_object('id', call_id, 'name', tool_name, 'arguments', arguments)) FROM (
            SELECT p.call_id, p.tool_name, p.arguments FROM parts p
            WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.kind = 'tool_call'
            ORDER BY p.id)) AS tool_calls,
       m.tokens, m.created_at AS timestamp
FROM messages m;

DROP VIEW tool_uses;
CREATE VIEW tool_uses AS
SELECT m.session_id, m.seq, c.tool_name, c.arguments,
       (SELECT CASE WHEN r.blob IS NULL THEN r.text
                    ELSE (SELECT b.text FROM blob_texts b WHERE b.sha256 = r.blob) END
        FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS result,
       (SELECT r.is_error FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS is_error,
       (SELECT r.duration_ms FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS duration_ms,
       m.created_at
FROM parts c JOIN messages m ON m.id = c.message_id
WHERE c.kind = 'tool_call';
