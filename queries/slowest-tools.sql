-- Which tools take longest?
--
-- :limit  rows (default: 30)
SELECT tool_name, COUNT(duration_ms) AS timed_uses, ROUND(AVG(duration_ms)) AS mean_ms,
       MAX(duration_ms) AS worst_ms, ROUND(SUM(duration_ms) / 1000.0, 1) AS total_seconds
FROM tool_uses
GROUP BY tool_name
HAVING COUNT(duration_ms) > 0
ORDER BY mean_ms DESC, tool_name
LIMIT COALESCE(:limit, 30);
