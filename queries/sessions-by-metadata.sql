-- Which sessions carry a value in their metadata?
--
-- :name   a key of the metadata, or a JSON path that begins with $ (default: any)
-- :value  the value of that key (default: any)
-- :limit  rows, newest first (default: 30)
SELECT id, title, active_at, metadata
FROM sessions
WHERE deleted_at IS NULL AND metadata <> '{}'
  AND (:name IS NULL OR CASE WHEN :value IS NULL THEN json_type(metadata, CASE WHEN :name LIKE '$%' THEN :name ELSE '$."' || :name || '"' END) IS NOT NULL
                             ELSE CAST(json_extract(metadata, CASE WHEN :name LIKE '$%' THEN :name ELSE '$."' || :name || '"' END) AS TEXT) = :value END)
ORDER BY active_at DESC, id DESC
LIMIT COALESCE(:limit, 30);
