-- Which sessions stopped in the middle: a failed reply, or a tool call that never came back?
--
-- :limit  rows, newest first (default: 20)
SELECT s.id, s.source, s.project, s.title, s.active_at, m.role AS last_role,
       CASE WHEN m.finish IN ('error', 'aborted', 'length', 'paused') THEN 'reply: ' || m.finish
            WHEN m.origin = 'tool' THEN 'results were never answered'
            ELSE 'calls were never run' END AS state
FROM sessions s JOIN messages m ON m.id = s.head_id
WHERE s.deleted_at IS NULL
  AND (m.finish IN ('error', 'aborted', 'length', 'paused') OR m.origin = 'tool'
       OR EXISTS (SELECT 1 FROM parts p
                  WHERE p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023 AND p.kind = 'tool_call'))
ORDER BY s.active_at DESC, s.id DESC
LIMIT COALESCE(:limit, 20);
