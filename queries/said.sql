-- Where did we talk about it? (By a scan, while `sessiond search` has an index.)
--
-- :text   text that the message contains, in upper or lower case (default: any message)
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest first (default: 20)
SELECT f.session_id, m.seq, f.role, f.timestamp,
       trim(replace(substr(f.content, CAST(max(COALESCE(instr(lower(f.content), lower(:text)), 1) - 60, 1) AS INTEGER), 200), '
', ' ')) AS excerpt
FROM messages m JOIN messages_flat f ON f.id = m.id JOIN sessions s ON s.id = m.session_id
WHERE m.day >= COALESCE(:since, '') AND s.purged_at IS NULL
  AND (:text IS NULL OR instr(lower(f.content), lower(:text)) > 0)
ORDER BY m.id DESC
LIMIT COALESCE(:limit, 20);
