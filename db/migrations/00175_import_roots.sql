-- +goose Up
-- The daemon asks at each scan which folders it follows: among the thousands of files in them these few are found at once.
CREATE INDEX imports_roots ON imports (source, path) WHERE CAST(state AS TEXT) = '{"root":true}';
