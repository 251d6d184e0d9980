-- Which sessions are close to filling their model's window?
--
-- :percent  at least this full, in percent (default: 50)
-- :limit    rows (default: 20)
WITH measured AS (
    SELECT s.id, s.title, s.model, s.context_tokens AS estimated, COALESCE(s.window, w.window) AS window_tokens, s.compaction_count,
           (SELECT c.input_tokens + c.cache_read_tokens + c.cache_write_tokens + c.output_tokens + h.path_tokens - m.path_tokens
            FROM messages h JOIN calls c ON c.id = (SELECT MAX(r.id) FROM calls r WHERE r.session_id = s.id AND r.session_id <> '' AND r.purpose = 'chat' AND r.status = 'ok'
                AND r.message_id IS NOT NULL AND r.input_tokens + r.cache_read_tokens + r.cache_write_tokens > 0)
            JOIN messages m ON m.id = c.message_id
            WHERE h.id = s.head_id AND c.model IN ('', s.model) AND m.session_id = s.id AND h.session_id = s.id AND h.seq >= m.seq
              AND NOT EXISTS (SELECT 1 FROM messages x WHERE x.session_id = s.id AND x.seq > m.seq AND x.seq <= h.seq AND x.jump = 1)
              AND NOT EXISTS (SELECT 1 FROM compactions o WHERE o.id = s.compaction_id AND o.activated_at >= c.created_at)) AS of_provider
    FROM sessions s LEFT JOIN models w ON w.id = s.model
    WHERE s.deleted_at IS NULL AND s.archived_at IS NULL
), sizes AS (
    SELECT id, title, model, COALESCE(of_provider, estimated) AS context_tokens, CASE WHEN of_provider IS NULL THEN 0 ELSE 1 END AS reported,
           window_tokens, compaction_count
    FROM measured
)
SELECT id, title, model, context_tokens, reported, window_tokens, ROUND(100.0 * context_tokens / window_tokens, 1) AS percent, compaction_count
FROM sizes
WHERE 100.0 * context_tokens / window_tokens >= CAST(COALESCE(:percent, 50) AS REAL)
ORDER BY percent DESC, id
LIMIT COALESCE(:limit, 20);
