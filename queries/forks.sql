-- Which sessions are forks, and where do they leave their parent?
--
-- :limit  rows, newest first (default: 30)
SELECT s.id, s.title, p.id AS parent_id, p.title AS parent_title,
       (SELECT a.session_id || '.' || a.seq FROM links l JOIN messages a ON a.id = l.message_id
        JOIN sessions o ON o.id = a.session_id AND o.purged_at IS NULL
        WHERE l.session_id = s.id) AS forked_at,
       s.message_count AS own_messages
FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_id AND p.purged_at IS NULL
WHERE s.parent_kind = 'fork' AND s.parent_id <> '' AND s.deleted_at IS NULL
ORDER BY s.created_at DESC, s.id DESC
LIMIT COALESCE(:limit, 30);
