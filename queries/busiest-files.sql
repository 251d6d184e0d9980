-- Which files do the agents work on most?
--
-- :under  only paths that begin with this (default: all)
-- :limit  rows (default: 30)
SELECT path, COUNT(DISTINCT session_id) AS sessions, SUM(op = 'read') AS reads, SUM(op <> 'read') AS changes
FROM touched_files
WHERE substr(path, 1, length(COALESCE(:under, ''))) = COALESCE(:under, '')
GROUP BY path
ORDER BY changes DESC, reads DESC, path
LIMIT COALESCE(:limit, 30);
