-- +goose Up
-- The prompts of a long conversation are counted without reading its messages. Those before the 5,001st message are read
-- fast without an index, and an append to a conversation of usual length writes no page more.
CREATE INDEX messages_prompts ON messages (session_id, seq) WHERE seq > 5000 AND origin = 'person' AND kind IN ('message', 'bash');
