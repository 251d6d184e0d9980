-- How far is each imported file read?
--
-- :source  only this program (default: all)
-- :limit   rows, newest first (default: 50)
SELECT source, path, session_id, size AS bytes, "offset" AS bytes_read, size - "offset" AS bytes_left, updated_at
FROM imports
WHERE (:source IS NULL OR source = :source) AND json_extract(state, '$.root') IS NULL
ORDER BY updated_at DESC, source, path
LIMIT COALESCE(:limit, 50);
