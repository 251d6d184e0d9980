-- Which projects are there, and when did I last work on each?
--
-- :limit  rows, newest first (default: 50)
SELECT project, COUNT(*) AS sessions, COUNT(DISTINCT source) AS programs, SUM(message_count) AS messages,
       ROUND(SUM(cost_nanousd) / 1e9, 2) AS usd, SUM(unpriced_calls) AS unpriced_calls,
       MIN(day) AS first_day, MAX(active_at) AS last_active_at
FROM sessions
WHERE deleted_at IS NULL AND draft = 0
GROUP BY project
ORDER BY last_active_at DESC, project
LIMIT COALESCE(:limit, 50);
