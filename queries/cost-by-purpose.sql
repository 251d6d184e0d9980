-- What is the money spent on: talk, summaries, titles?
--
-- :since  first day that counts (default: the first one)
SELECT purpose, model, COUNT(*) AS calls, SUM(status = 'failed') AS failed,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in,
       SUM(output_tokens) AS tokens_out, ROUND(SUM(cost_nanousd) / 1e9, 4) AS usd,
       SUM(cost_nanousd IS NULL) AS unpriced_calls
FROM calls
WHERE day >= COALESCE(:since, '')
GROUP BY purpose, model
ORDER BY usd DESC, calls DESC;
