-- Which sessions read or changed a file?
--
-- :path   the file, or the end of its path (default: every file)
-- :limit  rows, newest first (default: 50)
SELECT s.id, s.source, s.title, f.path,
       SUM(f.op = 'read') AS reads, SUM(f.op <> 'read') AS changes, MAX(m.created_at) AS last_at
FROM touched_files f
JOIN sessions s ON s.id = f.session_id
JOIN messages m ON m.id = f.message_id
WHERE (:path IS NULL OR f.path = :path OR substr(f.path, length(f.path) - length(:path)) = '/' || :path)
  AND s.deleted_at IS NULL
GROUP BY s.id, f.path
ORDER BY last_at DESC, s.id DESC, f.path
LIMIT COALESCE(:limit, 50);
