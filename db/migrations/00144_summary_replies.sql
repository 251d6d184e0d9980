-- +goose Up
-- Codex writes the text of a compaction as a reply before the record of the compaction, which repeats it: it is no reply to
-- the person. Rows of earlier imports show it in the compaction alone from now on.
DROP TRIGGER messages_immutable;

UPDATE messages SET display = 0, talk = 'work'
WHERE id IN (
    SELECT m.id FROM compactions c
    JOIN sessions s ON s.id = c.session_id AND s.source = 'codex'
    JOIN messages m ON m.id BETWEEN c.through_id - 8 AND c.through_id - 1 AND m.session_id = c.session_id
    JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
    WHERE c.trigger = 'import' AND m.role = 'assistant' AND m.talk = 'said' AND p.kind = 'text' AND TRIM(p.text) <> ''
      AND SUBSTR(RTRIM(c.summary), -LENGTH(TRIM(p.text))) = TRIM(p.text)
);

-- +goose StatementBegin
CREATE TRIGGER messages_immutable BEFORE UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: a message is immutable; append a new one, or compact');
END;
-- +goose StatementEnd

UPDATE sessions SET said_count = (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id AND m.talk = 'said')
WHERE source = 'codex' AND id IN (SELECT session_id FROM compactions WHERE trigger = 'import');
