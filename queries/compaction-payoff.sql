-- Which compactions paid off: tokens saved against what the summary cost?
--
-- :limit  rows (default: 20)
SELECT c.session_id, COUNT(*) AS compactions,
       SUM(EXISTS (SELECT 1 FROM compaction_undos u
                   WHERE u.session_id = c.session_id AND u.compaction_id = c.id)) AS undone,
       SUM(c.tokens_before - c.tokens_after) FILTER (WHERE NOT EXISTS (SELECT 1 FROM compaction_undos u
                   WHERE u.session_id = c.session_id AND u.compaction_id = c.id)) AS tokens_saved,
       ROUND(SUM((SELECT SUM(k.cost_nanousd) FROM calls k WHERE k.compaction_id = c.id)) / 1e9, 4) AS summary_usd
FROM compactions c
WHERE c.status = 'done'
GROUP BY c.session_id
ORDER BY tokens_saved DESC, c.session_id
LIMIT COALESCE(:limit, 20);
