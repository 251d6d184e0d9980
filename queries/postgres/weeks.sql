-- How did each week go: sessions, prompts, tokens, money?
--
-- :limit  rows, newest first (default: 26)
SELECT to_char(d, 'IYYY-"W"IW') AS week,
       MIN(day) AS first_day, COUNT(DISTINCT day) AS days,
       SUM(sessions) AS sessions, SUM(prompts) AS prompts, SUM(messages) AS messages,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in, SUM(output_tokens) AS tokens_out,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd
FROM daily_usage, CAST(day AS DATE) AS d
GROUP BY week
ORDER BY week DESC
LIMIT COALESCE(:limit, 26);
