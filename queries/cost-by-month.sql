-- What did each month cost?
--
-- :limit  rows, newest first (default: 24)
SELECT substr(day, 1, 7) AS month, COUNT(DISTINCT day) AS days, SUM(sessions) AS sessions,
       SUM(prompts) AS prompts, SUM(calls) AS calls,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage
GROUP BY month
ORDER BY month DESC
LIMIT COALESCE(:limit, 24);
