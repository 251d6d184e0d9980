-- How many prompts did I type, by day?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest first (default: 60)
SELECT day, COUNT(*) AS prompts, COUNT(DISTINCT session_id) AS sessions
FROM messages
WHERE origin = 'person' AND day >= COALESCE(:since, '')
GROUP BY day
ORDER BY day DESC
LIMIT COALESCE(:limit, 60);
