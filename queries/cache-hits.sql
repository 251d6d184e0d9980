-- How much of what each model read came from its cache?
--
-- :since  first day that counts (default: the first one)
SELECT model, COUNT(*) AS calls,
       SUM(input_tokens + cache_read_tokens + cache_write_tokens) AS tokens_in,
       SUM(cache_read_tokens) AS cache_read_tokens,
       ROUND(100.0 * SUM(cache_read_tokens)
             / NULLIF(SUM(input_tokens + cache_read_tokens + cache_write_tokens), 0), 1) AS hit_percent
FROM calls
WHERE day >= COALESCE(:since, '')
GROUP BY model
ORDER BY tokens_in DESC, model;
