-- Which routing keys are there, and how far has each come?
--
-- :limit  rows, newest first (default: 30)
SELECT key, COUNT(*) AS sessions, MAX(generation) AS generation, SUM(message_count) AS messages,
       ROUND(SUM(cost_nanousd) / 1e9, 4) AS usd, MAX(active_at) AS last_active_at
FROM sessions
WHERE key <> ''
GROUP BY key
ORDER BY last_active_at DESC, key
LIMIT COALESCE(:limit, 30);
