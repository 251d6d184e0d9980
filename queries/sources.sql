-- How much came from each program?
SELECT source, COUNT(*) AS sessions, SUM(message_count) AS messages, SUM(total_tokens) AS tokens,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in, SUM(output_tokens) AS tokens_out,
       ROUND(SUM(cost_nanousd) / 1e9, 2) AS usd, SUM(unpriced_calls) AS unpriced_calls, MAX(active_at) AS last_active_at
FROM sessions
WHERE deleted_at IS NULL AND draft = 0
GROUP BY source
ORDER BY messages DESC, source;
