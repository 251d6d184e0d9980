-- +goose Up
CREATE INDEX sessions_project ON sessions (project);
