-- What did sub-agents cost the sessions that started them?
--
-- :limit  rows (default: 20)
SELECT k.parent_id, p.title, COUNT(*) AS children,
       ROUND(SUM(k.cost_nanousd) / 1e9, 4) AS children_usd, ROUND(p.cost_nanousd / 1e9, 4) AS own_usd,
       SUM(k.unpriced_calls) AS unpriced_calls
FROM sessions k LEFT JOIN sessions p ON p.id = k.parent_id
WHERE k.parent_kind = 'child' AND k.parent_id <> ''
GROUP BY k.parent_id, p.id
ORDER BY children_usd DESC NULLS LAST, k.parent_id
LIMIT COALESCE(:limit, 20);
