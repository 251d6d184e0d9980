-- +goose Up
-- The few sessions of a project among many are found without reading the others. An append changes no project, so it
-- writes no page more.
CREATE INDEX sessions_project ON sessions (project);
