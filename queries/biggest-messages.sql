-- Which single messages weigh most in a context?
--
-- :limit  rows (default: 20)
SELECT m.session_id, m.seq, m.role, m.tokens,
       ROUND(100.0 * m.tokens / NULLIF(s.total_tokens, 0), 1) AS percent_of_session,
       (SELECT GROUP_CONCAT(tool_name) FROM (SELECT DISTINCT p.tool_name FROM parts p
        WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.tool_name <> '' ORDER BY p.tool_name)) AS tools
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE s.purged_at IS NULL
ORDER BY m.tokens DESC, m.id
LIMIT COALESCE(:limit, 20);
