-- How fast does each model answer?
--
-- :since  first day that counts (default: the first one)
SELECT model, COUNT(*) AS timed_calls, ROUND(AVG(latency_ms)) AS mean_ms, MAX(latency_ms) AS worst_ms,
       ROUND(1000.0 * SUM(output_tokens) / NULLIF(SUM(latency_ms), 0), 1) AS output_tokens_per_second
FROM calls
WHERE latency_ms IS NOT NULL AND status = 'ok' AND day >= COALESCE(:since, '')
GROUP BY model
ORDER BY timed_calls DESC, model;
