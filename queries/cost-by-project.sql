-- What did each project cost this month?
--
-- :since  first day that counts (default: the first of this month)
-- :limit  rows (default: 50)
SELECT CASE WHEN s.id IS NULL THEN '(purged)' ELSE s.project END AS project,
       COUNT(*) AS calls,
       ROUND(SUM(c.cost_nanousd) / 1e9, 2) AS usd,
       SUM(c.cost_nanousd IS NULL) AS unpriced_calls
FROM calls c LEFT JOIN sessions s ON s.id = c.session_id
WHERE c.day >= COALESCE(:since, date('now', 'localtime', 'start of month'))
GROUP BY 1
ORDER BY usd DESC, calls DESC
LIMIT COALESCE(:limit, 50);
