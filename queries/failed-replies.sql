-- Which replies of a model failed, were cut short or refused?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest first (default: 30)
SELECT m.created_at, m.session_id, m.seq, m.model, m.finish, substr(f.content, 1, 160) AS content
FROM messages m JOIN messages_flat f ON f.id = m.id
WHERE m.finish IN ('error', 'aborted', 'length', 'refusal') AND m.day >= COALESCE(:since, '')
ORDER BY m.id DESC
LIMIT COALESCE(:limit, 30);
