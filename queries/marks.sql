-- What did I pin or label?
--
-- :limit  rows, newest first (default: 50)
SELECT k.created_at, k.kind, k.text AS label, m.session_id, m.seq, m.role, substr(f.content, 1, 160) AS content
FROM marks k
JOIN messages m ON m.id = k.message_id
JOIN messages_flat f ON f.id = m.id
ORDER BY k.created_at DESC, k.message_id DESC, k.kind
LIMIT COALESCE(:limit, 50);
