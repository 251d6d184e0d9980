-- Which tools did each session use, and how often?
--
-- :session  only this session (default: all)
-- :limit    rows, newest session first (default: 50)
SELECT m.session_id, p.tool_name, COUNT(*) AS uses, MIN(m.seq) AS first_seq, MAX(m.seq) AS last_seq
FROM messages m JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
WHERE p.kind = 'tool_call' AND (:session IS NULL OR m.session_id = :session)
GROUP BY m.session_id, p.tool_name
ORDER BY MAX(m.id) DESC, uses DESC
LIMIT COALESCE(:limit, 50);
