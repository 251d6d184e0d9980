-- +goose Up
-- The classic shape of a chat log, for people and for scripts written for it.
CREATE VIEW messages_flat AS
SELECT m.id, m.session_id, m.role,
       (SELECT GROUP_CONCAT(t, char(10)) FROM (
            SELECT CASE WHEN p.blob IS NULL THEN p.text
                        ELSE (SELECT CAST(b.data AS TEXT) FROM blobs b
                              WHERE b.sha256 = p.blob AND b.media_type LIKE 'text/plain%') END AS t
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

-- Every call of a tool with what came back. Without a result its columns are NULL.
CREATE VIEW tool_uses AS
SELECT m.session_id, m.seq, c.tool_name, c.arguments,
       (SELECT CASE WHEN r.blob IS NULL THEN r.text
                    ELSE (SELECT CAST(b.data AS TEXT) FROM blobs b
                          WHERE b.sha256 = r.blob AND b.media_type LIKE 'text/plain%') END
        FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS result,
       (SELECT r.is_error FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS is_error,
       (SELECT r.duration_ms FROM parts r WHERE r.call_part_id = c.id ORDER BY r.id LIMIT 1) AS duration_ms,
       m.created_at
FROM parts c JOIN messages m ON m.id = c.message_id
WHERE c.kind = 'tool_call';
