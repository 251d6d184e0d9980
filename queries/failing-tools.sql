-- Which tools fail most?
--
-- :limit  rows (default: 30)
SELECT tool_name, COUNT(*) AS uses, SUM(is_error) AS errors,
       ROUND(100.0 * SUM(is_error) / COUNT(is_error), 1) AS error_percent,
       SUM(result IS NULL) AS without_result
FROM tool_uses
GROUP BY tool_name
ORDER BY errors DESC NULLS LAST, uses DESC, tool_name
LIMIT COALESCE(:limit, 30);
