-- +goose Up
CREATE INDEX messages_prompts ON messages (session_id, seq) WHERE origin = 'person' AND kind IN ('message', 'bash');
