-- What was said in one session, in order of arrival?
--
-- :session  the session (default: the one that was active last)
-- :after    only messages with a greater seq (default: 0)
SELECT m.seq, m.role, m.origin, m.created_at, f.content, NULLIF(CAST(f.tool_calls AS TEXT), '[]') AS tool_calls
FROM messages m JOIN messages_flat f ON f.id = m.id
WHERE m.session_id = COALESCE(:session, (SELECT id FROM sessions WHERE deleted_at IS NULL AND head_id IS NOT NULL
                                         ORDER BY active_at DESC, id DESC LIMIT 1))
  AND m.seq > COALESCE(:after, 0) AND m.display = 1
ORDER BY m.seq;
