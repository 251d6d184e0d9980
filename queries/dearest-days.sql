-- Which days were the dearest?
--
-- :limit  rows (default: 20)
SELECT day, SUM(prompts) AS prompts, SUM(calls) AS calls, ROUND(SUM(cost_nanousd) / 1e9, 2) AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage
GROUP BY day
HAVING SUM(calls) > SUM(unpriced_calls)
ORDER BY SUM(cost_nanousd) DESC, day
LIMIT COALESCE(:limit, 20);
