-- What does one path hold, from its root to its head?
--
-- :session  the session (default: the one that was active last)
-- :seq      the seq of the last message of the path (default: the session's head)
-- :limit    messages, counted back from there (default: all)
WITH RECURSIVE path (id, parent_id, n) AS (
    SELECT id, parent_id, 1 FROM messages
    WHERE id = (SELECT CASE WHEN :seq IS NULL THEN s.head_id
                            ELSE (SELECT m.id FROM messages m WHERE m.session_id = s.id AND m.seq = :seq) END
                FROM sessions s
                WHERE s.id = COALESCE(:session, (SELECT id FROM sessions WHERE deleted_at IS NULL AND head_id IS NOT NULL
                                                 ORDER BY active_at DESC, id DESC LIMIT 1)))
    UNION ALL
    SELECT m.id, m.parent_id, path.n + 1 FROM path JOIN messages m ON m.id = path.parent_id
    WHERE path.n < COALESCE(CAST(:limit AS BIGINT), path.n + 1)
)
SELECT CASE WHEN o.purged_at IS NULL THEN m.session_id END AS session_id, m.seq, m.role, m.origin, m.tokens, m.path_tokens, f.content, NULLIF(CAST(f.tool_calls AS TEXT), '[]') AS tool_calls
FROM path JOIN messages m ON m.id = path.id JOIN messages_flat f ON f.id = path.id JOIN sessions o ON o.id = m.session_id
WHERE path.n <= COALESCE(CAST(:limit AS BIGINT), path.n)
ORDER BY m.depth;
