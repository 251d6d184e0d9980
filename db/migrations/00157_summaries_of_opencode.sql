-- +goose Up
-- opencode and Kilo write the text of a compaction as a reply, too: rows of earlier imports show it in the compaction alone
-- from now on.
DROP TRIGGER messages_immutable;

UPDATE messages SET display = 0, talk = 'work'
WHERE role = 'assistant' AND talk = 'said' AND in_context = 0 AND id IN (
    SELECT m.id FROM compactions c
    JOIN sessions s ON s.id = c.session_id AND s.source IN ('opencode', 'kilo')
    JOIN messages m ON m.session_id = c.session_id AND m.id > c.through_id
    JOIN parts p ON p.id BETWEEN m.id << 10 AND (m.id << 10) + 1023
    WHERE c.trigger = 'import' AND p.kind = 'text' AND p.text <> '' AND p.text = c.summary
);

-- +goose StatementBegin
CREATE TRIGGER messages_immutable BEFORE UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: a message is immutable; append a new one, or compact');
END;
-- +goose StatementEnd

UPDATE sessions SET said_count = (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id AND m.talk = 'said')
WHERE source IN ('opencode', 'kilo') AND id IN (SELECT session_id FROM compactions WHERE trigger = 'import');
