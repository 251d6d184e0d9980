-- How much of each model's output is reasoning?
--
-- :since  first day that counts (default: the first one)
SELECT model, COUNT(*) AS calls, SUM(output_tokens) AS output_tokens, SUM(reasoning_tokens) AS reasoning_tokens,
       ROUND(100.0 * SUM(reasoning_tokens) / NULLIF(SUM(output_tokens), 0), 1) AS reasoning_percent
FROM calls
WHERE day >= COALESCE(:since, '')
GROUP BY model
HAVING SUM(output_tokens) > 0
ORDER BY reasoning_tokens DESC, model;
