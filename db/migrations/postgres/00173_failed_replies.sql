-- +goose Up
CREATE INDEX messages_failed ON messages (session_id) WHERE finish = 'error';
