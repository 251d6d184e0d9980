-- +goose Up
CREATE INDEX imports_roots ON imports (source, path) WHERE CAST(state AS TEXT) = '{"root":true}';
