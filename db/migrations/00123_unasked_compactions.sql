-- +goose Up
-- Compactions that took effect in idle sessions of other programs, in which no client took a turn, are undone:
-- nobody asked for them, and the talk looks as if its program had compacted it. The records stay.
INSERT INTO compaction_undos (session_id, compaction_id, at)
WITH RECURSIVE chain (session_id, id) AS (
    SELECT s.id, s.compaction_id FROM sessions s
    WHERE s.source <> 'sessiond' AND s.compaction_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM contexts x WHERE x.session_id = s.id)
    UNION
    SELECT chain.session_id, c.previous_id FROM chain JOIN compactions c ON c.id = chain.id WHERE c.previous_id IS NOT NULL
), wrong (session_id, id) AS (
    SELECT c.session_id, c.id FROM compactions c JOIN sessions s ON s.id = c.session_id
    WHERE c.status = 'done' AND c.trigger = 'threshold' AND s.source <> 'sessiond'
      AND NOT EXISTS (SELECT 1 FROM contexts x WHERE x.session_id = s.id)
    UNION
    SELECT chain.session_id, chain.id FROM chain JOIN compactions c ON c.id = chain.id WHERE c.trigger = 'threshold' -- inherited by a fork
)
SELECT session_id, id, strftime('%Y-%m-%d %H:%M:%f', 'now') FROM wrong w
WHERE NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = w.session_id AND u.compaction_id = w.id);

-- In force is again what came before them: a compaction that the program made, or none.
UPDATE sessions SET epoch = epoch + 1, revision = revision + 1, compaction_id = (
    WITH RECURSIVE chain (id, depth) AS (
        SELECT sessions.compaction_id, 0
        UNION ALL
        SELECT c.previous_id, chain.depth + 1 FROM chain JOIN compactions c ON c.id = chain.id WHERE c.previous_id IS NOT NULL
    )
    SELECT chain.id FROM chain
    WHERE NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = chain.id)
    ORDER BY chain.depth LIMIT 1)
WHERE source <> 'sessiond' AND compaction_id IS NOT NULL
  AND EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = sessions.compaction_id);

UPDATE sessions SET
    compaction_count = (SELECT COUNT(*) FROM compactions c WHERE c.session_id = sessions.id AND c.status = 'done'
        AND NOT EXISTS (SELECT 1 FROM compaction_undos u WHERE u.session_id = sessions.id AND u.compaction_id = c.id)),
    context_tokens = COALESCE((SELECT path_tokens FROM messages WHERE id = sessions.head_id), 0)
        - COALESCE((SELECT hidden_tokens - summary_tokens FROM compactions WHERE id = sessions.compaction_id), 0)
WHERE source <> 'sessiond' AND id IN (SELECT session_id FROM compaction_undos);
