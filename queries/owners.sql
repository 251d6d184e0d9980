-- Whose sessions are here, from which hosts, and what did they cost?
--
-- :limit  rows (default: 50)
SELECT owner, host, COUNT(*) AS sessions, SUM(message_count) AS messages,
       ROUND(SUM(cost_nanousd) / 1e9, 2) AS usd, MAX(active_at) AS active_at
FROM sessions
WHERE draft = 0 AND purged_at IS NULL
GROUP BY owner, host
ORDER BY sessions DESC, owner, host
LIMIT COALESCE(:limit, 50);
