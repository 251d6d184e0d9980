-- What did each model cost, week by week?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest week first (default: 100)
SELECT strftime('%Y-W', thursday) || printf('%02d', (strftime('%j', thursday) + 6) / 7) AS week, model, SUM(calls) AS calls,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM (SELECT *, DATE(day, '-3 days', 'weekday 4') AS thursday FROM daily_usage) -- which is in the year of an ISO week
WHERE day >= COALESCE(:since, '')
GROUP BY week, model
HAVING SUM(calls) > 0
ORDER BY week DESC, usd DESC, model
LIMIT COALESCE(:limit, 100);
