-- Which sessions are close to filling their model's window?
--
-- :percent  at least this full, in percent (default: 50)
-- :limit    rows (default: 20)
SELECT s.id, s.title, s.model, s.context_tokens, COALESCE(s.window, m.window) AS window_tokens,
       ROUND(100.0 * s.context_tokens / COALESCE(s.window, m.window), 1) AS percent, s.compaction_count
FROM sessions s LEFT JOIN models m ON m.id = s.model
WHERE s.deleted_at IS NULL AND s.archived_at IS NULL
  AND 100.0 * s.context_tokens / COALESCE(s.window, m.window) >= CAST(COALESCE(:percent, 50) AS REAL)
ORDER BY percent DESC, s.id
LIMIT COALESCE(:limit, 20);
