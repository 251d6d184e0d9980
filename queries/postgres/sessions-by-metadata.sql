-- Which sessions carry a value in their metadata?
--
-- :name   a key of the metadata, or a JSON path that begins with $ (default: any)
-- :value  the value of that key (default: any)
-- :limit  rows, newest first (default: 30)
SELECT id, title, active_at, metadata
FROM sessions
WHERE deleted_at IS NULL AND CAST(metadata AS TEXT) <> '{}'
  AND (:name IS NULL OR CASE WHEN :name LIKE '$%' THEN jsonb_path_exists(CAST(metadata AS JSONB), CAST(:name AS JSONPATH))
                                                       AND (:value IS NULL OR jsonb_path_query_first(CAST(metadata AS JSONB), CAST(:name AS JSONPATH)) #>> '{}' = :value)
                             ELSE (metadata -> :name) IS NOT NULL AND (:value IS NULL OR metadata ->> :name = :value) END)
ORDER BY active_at DESC, id DESC
LIMIT COALESCE(:limit, 30);
