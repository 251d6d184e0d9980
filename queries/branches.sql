-- In which sessions was a path left for another one?
--
-- :limit  rows (default: 30)
SELECT s.id, s.source, s.title, COUNT(*) AS branches, s.message_count
FROM messages m
JOIN messages p ON p.id = m.parent_id AND p.session_id = m.session_id
JOIN sessions s ON s.id = m.session_id
WHERE m.jump = 1 AND s.deleted_at IS NULL
GROUP BY s.id
ORDER BY branches DESC, s.id
LIMIT COALESCE(:limit, 30);
