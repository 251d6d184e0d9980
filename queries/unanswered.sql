-- Where was I left without an answer?
--
-- :limit  rows, newest first (default: 20)
SELECT s.id, s.source, s.project, s.title, s.active_at, substr(f.content, 1, 160) AS last_prompt
FROM sessions s
JOIN messages m ON m.id = s.head_id
JOIN messages_flat f ON f.id = m.id
WHERE m.origin = 'person' AND s.deleted_at IS NULL
ORDER BY s.active_at DESC, s.id DESC
LIMIT COALESCE(:limit, 20);
