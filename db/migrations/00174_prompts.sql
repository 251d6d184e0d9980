-- +goose Up
-- The prompts of a long conversation are counted without reading its messages.
CREATE INDEX messages_prompts ON messages (session_id, seq) WHERE origin = 'person' AND kind IN ('message', 'bash');
