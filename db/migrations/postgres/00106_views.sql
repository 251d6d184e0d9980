-- +goose Up
-- Large texts in one piece.
CREATE VIEW blob_texts AS
SELECT b.sha256, b.size, b.media_type,
       convert_from(b.data || COALESCE((SELECT STRING_AGG(p.data, ''::bytea ORDER BY p.n) FROM blob_pieces p WHERE p.sha256 = b.sha256), ''::bytea), 'UTF8') AS text
FROM blobs b
WHERE b.media_type LIKE 'text/plain%';

-- Messages in the classic shape: one row, one text.
CREATE VIEW messages_flat AS
SELECT m.id, m.session_id, m.role,
       (SELECT STRING_AGG(CASE WHEN p.blob IS NULL THEN p.text
                               ELSE (SELECT b.text FROM blob_texts b WHERE b.sha256 = p.blob) END, chr(10) ORDER BY p.id)
        FROM parts p
        WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
          AND p.kind IN ('text', 'refusal', 'tool_result')) AS content,
       COALESCE((SELECT JSON_AGG(JSON_BUILD_OBJECT('id', p.call_id, 'name', p.tool_name, 'arguments', p.arguments) ORDER BY p.id)
        FROM parts p
        WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.kind = 'tool_call'), '[]'::json) AS tool_calls,
       m.tokens, m.created_at AS timestamp
FROM messages m;

-- Tool calls with their results.
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
