-- What did I pin, tag or note?
--
-- :tag    only this tag (default: any)
-- :limit  rows, newest first (default: 50)
SELECT k.created_at, k.kind, k.text, k.session_id, m.seq, m.role, substr(COALESCE(f.content, s.title), 1, 160) AS content
FROM marks k
JOIN sessions s ON s.id = k.session_id
LEFT JOIN messages m ON m.id = k.message_id
LEFT JOIN messages_flat f ON f.id = m.id
WHERE :tag IS NULL OR k.kind = 'tag' AND LOWER(k.text) = LOWER(:tag)
ORDER BY k.created_at DESC, k.message_id DESC, k.kind, k.place
LIMIT COALESCE(:limit, 50);
