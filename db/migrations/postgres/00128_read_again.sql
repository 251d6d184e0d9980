-- +goose Up
-- Files are read once more from their beginning at the next import: Codex' sub-agents, whose copies of their parent's
-- usage were counted for them, and transcripts with a line that was kept raw though it may hold a record.
UPDATE imports SET size = -1, hash = ''
WHERE session_id <> '' AND "offset" > 0 AND session_id IN (
    SELECT id FROM sessions WHERE source = 'codex' AND parent_kind = 'child'
    UNION
    SELECT session_id FROM messages WHERE kind = 'unknown' AND CAST(extra AS TEXT) LIKE '%"note":"not a JSON object%'
);
