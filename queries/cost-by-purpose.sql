-- What is the money spent on: talk, summaries, titles?
--
-- :since  first day that counts (default: the first one)
SELECT purpose, model, SUM(calls) AS calls,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in, SUM(output_tokens) AS tokens_out,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 4) END AS usd,
       SUM(unpriced_calls) AS unpriced_calls
FROM daily_usage
WHERE day >= COALESCE(:since, '')
GROUP BY purpose, model
HAVING SUM(calls) > 0
ORDER BY usd DESC NULLS LAST, calls DESC, purpose, model;
