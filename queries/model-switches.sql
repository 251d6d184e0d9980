-- Where did a session go on with another model?
--
-- :limit  rows, newest first (default: 30)
WITH replies AS (
    SELECT id, session_id, seq, model, created_at,
           LAG(model) OVER (PARTITION BY session_id ORDER BY seq) AS previous_model
    FROM messages
    WHERE origin = 'model' AND model <> ''
)
SELECT created_at, session_id, seq, previous_model, model
FROM replies
WHERE previous_model <> model
ORDER BY id DESC
LIMIT COALESCE(:limit, 30);
