-- +goose Up
-- Only PostgreSQL needs an index of parts by their message: SQLite reads the range of their ids.
SELECT 1;
