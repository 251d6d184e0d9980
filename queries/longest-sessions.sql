-- Which sessions are the longest?
--
-- :limit  rows (default: 20)
SELECT id, source, project, title, message_count, total_tokens, compaction_count,
       ROUND((unixepoch(active_at) - unixepoch(created_at)) / 3600.0, 1) AS hours
FROM sessions
WHERE deleted_at IS NULL
ORDER BY message_count DESC, total_tokens DESC, id
LIMIT COALESCE(:limit, 20);
