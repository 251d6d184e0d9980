-- Which tools did each session use, and how often?
--
-- :session  only this session (default: all)
-- :limit    rows, newest first (default: 50)
SELECT session_id, tool_name, COUNT(*) AS uses, MIN(seq) AS first_seq, MAX(seq) AS last_seq, MAX(created_at) AS last_at
FROM tool_uses
WHERE (:session IS NULL OR session_id = :session)
GROUP BY session_id, tool_name
ORDER BY last_at DESC, uses DESC, session_id, tool_name
LIMIT COALESCE(:limit, 50);
