-- Which tool calls were made again and again with the same arguments in one session?
--
-- :times  repeated at least this often (default: 3)
-- :limit  rows (default: 30)
SELECT session_id, tool_name, substr(arguments, 1, 120) AS arguments, COUNT(*) AS times, SUM(is_error) AS errors
FROM tool_uses
GROUP BY session_id, tool_name, tool_uses.arguments
HAVING COUNT(*) >= CAST(COALESCE(:times, 3) AS INTEGER)
ORDER BY times DESC, session_id, tool_name, tool_uses.arguments
LIMIT COALESCE(:limit, 30);
