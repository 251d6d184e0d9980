-- What did each project cost this month, sub-agents included?
--
-- :since  first day that counts (default: the first of this month)
-- :limit  rows (default: 50)
SELECT project, SUM(calls) AS calls,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage
WHERE day >= COALESCE(:since, to_char(date_trunc('month', now()), 'YYYY-MM-DD'))
GROUP BY project
HAVING SUM(calls) > 0
ORDER BY usd DESC NULLS LAST, calls DESC, project
LIMIT COALESCE(:limit, 50);
