-- Which model calls failed, and why?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows (default: 30)
SELECT provider, model, purpose, error, COUNT(*) AS calls, MAX(created_at) AS last_at
FROM calls
WHERE status = 'failed' AND day >= COALESCE(:since, '')
GROUP BY provider, model, purpose, error
ORDER BY last_at DESC, provider, model, purpose, error
LIMIT COALESCE(:limit, 30);
