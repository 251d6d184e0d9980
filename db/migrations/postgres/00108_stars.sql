-- +goose Up
-- A person marks the sessions to find again.
ALTER TABLE sessions ADD COLUMN starred_at timestamptz; -- NULL: not marked

CREATE INDEX sessions_starred ON sessions (active_at, id) WHERE starred_at IS NOT NULL;
