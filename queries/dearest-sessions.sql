-- Which sessions were the dearest?
--
-- :since  only sessions created on or after this day (default: all)
-- :limit  rows (default: 10)
SELECT id, source, project, title, message_count, ROUND(cost_nanousd / 1e9, 4) AS usd, unpriced_calls
FROM sessions
WHERE deleted_at IS NULL AND cost_nanousd IS NOT NULL AND day >= COALESCE(:since, '')
ORDER BY cost_nanousd DESC, id
LIMIT COALESCE(:limit, 10);
