-- What does each session's summary say now?
--
-- :session  only this session (default: all)
-- :limit    rows, newest first (default: 10)
SELECT s.id, s.title, c.activated_at, c.summary_tokens, c.summary
FROM sessions s JOIN compactions c ON c.id = s.compaction_id
WHERE s.deleted_at IS NULL AND (:session IS NULL OR s.id = :session)
ORDER BY s.active_at DESC, s.id DESC
LIMIT COALESCE(:limit, 10);
