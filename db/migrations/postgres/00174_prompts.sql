-- +goose Up
CREATE INDEX messages_prompts ON messages (session_id, seq) WHERE seq > 5000 AND origin = 'person' AND kind IN ('message', 'bash');
