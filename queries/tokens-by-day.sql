-- How many tokens went in and out, and what did they cost, by day?
--
-- :since  first day that counts (default: the first one)
-- :limit  rows, newest first (default: 30)
SELECT day, SUM(calls) AS calls, SUM(input_tokens) AS input_tokens,
       SUM(cache_read_tokens) AS cache_read_tokens, SUM(cache_write_tokens) AS cache_write_tokens,
       SUM(output_tokens) AS output_tokens,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 4) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage
WHERE day >= COALESCE(:since, '')
GROUP BY day
HAVING SUM(calls) > 0
ORDER BY day DESC
LIMIT COALESCE(:limit, 30);
