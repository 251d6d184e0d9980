-- What did each model cost, week by week?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest week first (default: 100)
SELECT to_char(d, 'IYYY-"W"IW') AS week, model, SUM(calls) AS calls,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage, CAST(day AS DATE) AS d
WHERE day >= COALESCE(:since, '')
GROUP BY week, model
HAVING SUM(calls) > 0
ORDER BY week DESC, usd DESC NULLS LAST, model
LIMIT COALESCE(:limit, 100);
