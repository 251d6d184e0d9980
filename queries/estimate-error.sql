-- How far is sessiond's own count of a context from what the provider counted?
--
-- :since  first day that counts (default: the first one)
SELECT k.model, COUNT(*) AS contexts, SUM(c.tokens) AS estimated_tokens,
       SUM(k.input_tokens + k.cache_read_tokens + k.cache_write_tokens) AS reported_tokens,
       ROUND(100.0 * SUM(c.tokens) / NULLIF(SUM(k.input_tokens + k.cache_read_tokens + k.cache_write_tokens), 0) - 100, 1) AS error_percent,
       (SELECT ROUND(CAST(x.scale AS NUMERIC), 3) FROM calibrations x WHERE x.model = k.model) AS scale_in_use
FROM calls k JOIN contexts c ON c.id = k.context_id
WHERE k.status = 'ok' AND k.day >= COALESCE(:since, '')
GROUP BY k.model
ORDER BY contexts DESC, k.model;
