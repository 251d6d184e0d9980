-- +goose Up
-- Sessions with a failed reply are found without reading all messages.
CREATE INDEX messages_failed ON messages (session_id) WHERE finish = 'error';
