-- +goose Up
-- What a message is to the people who read a session. Rows of the program itself (settings, snapshots, lists of skills,
-- system prompts, kinds that nobody knows) are no talk: lists, search, titles and MCP leave them out.
ALTER TABLE messages ADD COLUMN talk TEXT NOT NULL DEFAULT 'work' CHECK (talk = 'said' OR talk = 'work' OR talk = 'program');
ALTER TABLE sessions ADD COLUMN said_count INTEGER NOT NULL DEFAULT 0; -- its own messages that are said

-- The only change that messages ever see: the column is new.
DROP TRIGGER messages_immutable;

UPDATE messages SET talk = 'program'
WHERE kind IN ('unknown', 'custom') OR role = 'system' OR origin = 'program' AND display = 0
   OR kind = 'marker' AND NOT EXISTS (SELECT 1 FROM parts p WHERE p.id BETWEEN messages.id << 10 AND (messages.id << 10) + 1023
          AND p.kind = 'text' AND (p.text <> '' OR p.blob IS NOT NULL));

UPDATE messages SET talk = 'said'
WHERE talk = 'work' AND display = 1
  AND (origin = 'person' OR origin = 'model' AND EXISTS (SELECT 1 FROM parts p WHERE p.id BETWEEN messages.id << 10 AND (messages.id << 10) + 1023
          AND p.kind IN ('text', 'refusal') AND (p.text <> '' OR p.blob IS NOT NULL)));

-- +goose StatementBegin
CREATE TRIGGER messages_immutable BEFORE UPDATE ON messages
BEGIN
    SELECT RAISE(ABORT, 'messages: a message is immutable; append a new one, or compact');
END;
-- +goose StatementEnd

UPDATE sessions SET said_count = (SELECT COUNT(*) FROM messages m WHERE m.session_id = sessions.id AND m.talk = 'said');
