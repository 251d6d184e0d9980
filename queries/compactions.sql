-- What did each compaction hide, and how much room did it make?
--
-- :session  only this session (default: all)
-- :limit    rows, newest first (default: 30)
SELECT c.created_at, c.session_id, c.strategy, c.trigger, c.status, c.reason, c.message_count,
       c.tokens_before, c.tokens_after, c.duration_ms, c.model,
       EXISTS (SELECT 1 FROM compaction_undos u
               WHERE u.session_id = c.session_id AND u.compaction_id = c.id) AS undone
FROM compactions c
WHERE (:session IS NULL OR c.session_id = :session)
ORDER BY c.id DESC
LIMIT COALESCE(:limit, 30);
