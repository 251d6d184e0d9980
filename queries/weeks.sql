-- How did each week go: sessions, prompts, tokens, money?
--
-- :limit  rows, newest first (default: 26)
SELECT strftime('%Y-W', thursday) || printf('%02d', (strftime('%j', thursday) + 6) / 7) AS week, MIN(day) AS first_day, COUNT(DISTINCT day) AS days,
       SUM(sessions) AS sessions, SUM(prompts) AS prompts, SUM(messages) AS messages,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in, SUM(output_tokens) AS tokens_out,
       CASE WHEN SUM(calls) > SUM(unpriced_calls) THEN ROUND(SUM(cost_nanousd) / 1e9, 2) END AS usd
FROM (SELECT *, DATE(day, '-3 days', 'weekday 4') AS thursday FROM daily_usage) -- which is in the year of an ISO week
GROUP BY week
ORDER BY week DESC
LIMIT COALESCE(:limit, 26);
